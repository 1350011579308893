package sessioncore

import (
	"bytes"
	"slices"
	"strings"
)

const (
	// maxYAML is how much of a JSON value is shown to a person, in bytes.
	maxYAML = 32 << 10
	// maxYAMLDepth is how deep it is taken apart, in levels; what is deeper stays JSON.
	maxYAMLDepth = 8
	// maxYAMLJSON is how much of such JSON is shown, in bytes.
	maxYAMLJSON = 200
)

// yamlText writes JSON so that people can read it: texts of several lines as they are, without quotes.
type yamlText struct {
	excerpt *excerpter

	out  []byte
	left int  // bytes that may still be written
	cut  bool // something was left out
}

// write writes a value behind what stands on the line: a scalar there, the members of an object or the
// elements of a list on lines of their own, indented by that many blanks.
func (y *yamlText) write(v value, indent, depth int) {
	if len(y.out) > y.left {
		y.cut = true
		return
	}
	switch {
	case depth == maxYAMLDepth && (v.isObject() || v.isArray()):
		y.space()
		y.json(v)
	case v.isObject():
		n := 0
		v.eachMember(func(m member) bool {
			n++
			y.indent(indent)
			y.key(m.key)
			y.write(m.value, indent+2, depth+1)
			return y.room()
		})
		y.orEmpty(n, "{}")
	case v.isArray():
		n := 0
		v.eachElement(func(e value, _ int) bool {
			n++
			y.indent(indent)
			y.out = append(y.out, '-')
			y.write(e, indent+2, depth+1)
			return y.room()
		})
		y.orEmpty(n, "[]")
	case v.isString():
		y.space()
		y.text(v, indent)
	default:
		y.space()
		y.json(v)
	}
}

// room reports whether there is room for more; where there is none, it says so.
func (y *yamlText) room() bool {
	if len(y.out) <= y.left {
		return true
	}
	if !y.cut || !bytes.HasSuffix(y.out, []byte("…\n")) {
		y.out = append(y.out, "…\n"...)
	}
	y.cut = true
	return false
}

// indent begins a member's or an element's line, or goes on behind the hyphen of the element that it is the
// first one of.
func (y *yamlText) indent(n int) {
	if k := len(y.out); k > 0 && y.out[k-1] == '-' {
		y.out = append(y.out, ' ')
		return
	} else if k > 0 && y.out[k-1] == ':' {
		y.out = append(y.out, '\n')
	}
	y.blanks(n)
}

func (y *yamlText) blanks(n int) {
	for range n {
		y.out = append(y.out, ' ')
	}
}

// space parts a scalar from the key or hyphen before it.
func (y *yamlText) space() {
	if k := len(y.out); k > 0 && y.out[k-1] != '\n' {
		y.out = append(y.out, ' ')
	}
}

func (y *yamlText) orEmpty(n int, empty string) {
	if n == 0 {
		y.space()
		y.out = append(append(y.out, empty...), '\n')
	}
}

// json writes a value as it is, on one line.
func (y *yamlText) json(v value) {
	text := v
	if len(v) > maxYAMLJSON {
		text = v[:maxYAMLJSON]
		y.cut = true
	}
	y.out = append(appendLine(y.out, appendVisible(nil, appendUTF8(nil, text)), maxYAMLJSON), '\n')
}

// notText are words that YAML takes for something else.
var notText = []string{"true", "false", "null", "yes", "no", "on", "off", "~", ".inf", ".nan"}

// isBare reports whether YAML takes a line for that text without quotes. Of a key, it has to be a plainer
// one.
func isBare(line []byte, key bool) bool {
	if len(line) == 0 {
		return false
	}
	switch c := line[0]; {
	case c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80:
	case !key && bytes.IndexByte([]byte("_/$~\\"), c) >= 0:
	case !key && c == '.' && bytes.IndexByte(line, '/') > 0: // a path, no number
	default:
		return false
	}
	last := line[len(line)-1]
	return last != ':' && last != ' ' && bytes.IndexByte(line, '\t') < 0 &&
		!bytes.Contains(line, []byte(": ")) && !bytes.Contains(line, []byte(" #")) &&
		!(len(line) <= len("false") && slices.Contains(notText, strings.ToLower(string(line))))
}

// maxKey is how much is shown of a key, in characters.
const maxKey = 100

func (y *yamlText) key(key value) {
	line := shownLine(key, maxKey)
	if isBare(line, true) {
		y.out = append(y.out, line...)
	} else {
		y.out = appendQuoted(y.out, string(line))
	}
	y.out = append(y.out, ':')
}

// text writes a string: on the line where it is one line, else below it as a block.
func (y *yamlText) text(v value, indent int) {
	x, squeezed := y.excerpt.of(v, outputLimits)
	y.cut = y.cut || squeezed || x.left > 0
	text := x.head
	if x.left > 0 {
		left := []byte("\n… " + sizeText(x.left) + " left out …\n")
		text = slices.Concat(bytes.TrimSuffix(text, []byte("\n")), left, x.tail)
	}
	if bytes.IndexByte(text, '\n') < 0 {
		if isBare(text, false) {
			y.out = append(append(y.out, text...), '\n')
		} else {
			y.out = append(appendQuoted(y.out, string(text)), '\n')
		}
		return
	}
	y.out = append(y.out, '|')
	if text[0] == ' ' || text[0] == '\t' || text[0] == '\n' {
		y.out = append(y.out, '2')
	}
	if !bytes.HasSuffix(text, []byte("\n")) {
		y.out = append(y.out, '-')
	} else if bytes.HasSuffix(text, []byte("\n\n")) {
		y.out = append(y.out, '+')
	}
	y.out = append(y.out, '\n')
	for line := range bytes.Lines(text) {
		if line[0] != '\n' {
			y.blanks(indent)
		}
		y.out = append(y.out, line...)
	}
	if !bytes.HasSuffix(y.out, []byte("\n")) {
		y.out = append(y.out, '\n')
	}
}
