package secrets

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// jsonString is a string in a line of JSON.
type jsonString struct {
	start, end int  // of its body in the line, without quotes
	isKey      bool // it is the key of a member
}

// place is where a scan of a line is: the key or the number of each value that it is in.
type place []level

type level struct {
	object   bool
	key      []byte // the body of the current member's key
	isMember bool   // the colon after the key has been seen
	number   int    // of the current element
}

// eachString calls visit for the strings in a line, keys included, whether or not the line is valid JSON. It reports
// whether the line has nothing but one object or array, as far as can be told from its brackets and from what is not in
// strings.
func eachString(line []byte, visit func(jsonString, place)) bool {
	var at place
	begun, text := false, false // text that is no JSON was seen
	bare := 0                   // bytes of the number or word that is being read
	line = bytes.TrimRight(line, " \t\r\n")
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == ' ' || c == '\t' {
			bare = 0
			continue
		}
		text = text || begun && len(at) == 0
		begun = true
		if bareByte[c] {
			bare++
			text = text || bare > maxBare || len(at) == 0
			continue
		}
		bare = 0
		if c == '"' {
			i = at.visitString(line, i+1, visit)
		} else if !at.take(c) {
			text = true
		}
	}
	return begun && !text && len(at) == 0
}

// visitString calls visit for the string whose body begins at i, and returns the offset of its end.
func (p place) visitString(line []byte, i int, visit func(jsonString, place)) int {
	s := jsonString{start: i, end: stringEnd(line, i)}
	if n := len(p); n > 0 && p[n-1].object && !p[n-1].isMember {
		s.isKey = true
		defer func() { p[n-1].key = line[s.start:s.end] }()
	}
	visit(s, p)
	return s.end
}

// take changes the place for a bracket, comma or colon. It reports false for what is none, or has no place here.
func (p *place) take(c byte) bool {
	if c == '{' || c == '[' {
		*p = append(*p, level{object: c == '{'})
		return true
	}
	if len(*p) == 0 {
		return false
	}
	top := &(*p)[len(*p)-1]
	switch c {
	case '}', ']':
		*p = (*p)[:len(*p)-1]
	case ',':
		top.number++
		top.isMember = false
	case ':':
		top.isMember = true
	default:
		return false
	}
	return true
}

// bareByte is the bytes of numbers and of true, false and null. None of these has more than maxBare bytes, or it is text.
var bareByte = func() (set [256]bool) {
	for _, c := range []byte("0123456789+-.eEtrufalsn") {
		set[c] = true
	}
	return set
}()

const maxBare = 32

// stringEnd returns where the body of a string ends that begins at i, which is the end of the line if no quote follows.
func stringEnd(line []byte, i int) int {
	for i < len(line) && line[i] != '"' {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	return min(i, len(line))
}

// key returns the key under which a value is, nil if there is none: that of the next object around it.
func (p place) key() []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].object {
			return p[i].key
		}
	}
	return nil
}

// pointer returns the JSON pointer (RFC 6901) of a value. Text that clean changes is left out.
func (p place) pointer(clean func(string) string) string {
	var out []byte
	for _, l := range p {
		out = append(out, '/')
		if !l.object {
			out = strconv.AppendInt(out, int64(l.number), 10)
			continue
		}
		key := clean(string(decode(nil, l.key)))
		for i := range len(key) {
			switch c := key[i]; c {
			case '~':
				out = append(out, "~0"...)
			case '/':
				out = append(out, "~1"...)
			default:
				out = append(out, c)
			}
		}
		if len(out) > maxPointer {
			return string(out[:maxPointer]) + "…"
		}
	}
	return string(out)
}

// maxPointer bounds what is told of a place, in bytes: keys can be of any length and nest to any depth.
const maxPointer = 500

// decode appends the text of a string's body to dst. What is no escape stays as it is, and so do bytes that are not
// UTF-8.
func decode(dst, body []byte) []byte {
	for len(body) > 0 {
		plain := bytes.IndexByte(body, '\\')
		if plain < 0 {
			return append(dst, body...)
		}
		dst = append(dst, body[:plain]...)
		text, n := decodeEscape(body[plain:])
		dst = append(dst, text...)
		body = body[plain+n:]
	}
	return dst
}

// encodedAt returns where in a string's body the byte at offset off of its text is written, for ascending offsets: it
// goes on from where it was before.
type encodedAt struct{ body, text int }

// seek returns the offset in body of the piece, a byte or an escape, that holds the byte off of the text, and the offset
// after that piece.
func (e *encodedAt) seek(body []byte, off int) (start, end int) {
	for e.body < len(body) {
		n, size := 1, 1
		if body[e.body] == '\\' {
			text, length := decodeEscape(body[e.body:])
			n, size = length, len(text)
		}
		if off < e.text+size {
			return e.body, e.body + n
		}
		e.body, e.text = e.body+n, e.text+size
	}
	return e.body, e.body
}

// decodeEscape returns the text of the escape at the start of b, and its length there. A backslash that begins none
// stands for itself.
func decodeEscape(b []byte) (text string, n int) {
	if len(b) < 2 {
		return `\`, 1
	}
	switch b[1] {
	case '"', '\\', '/':
		return string(b[1:2]), 2
	case 'b':
		return "\b", 2
	case 'f':
		return "\f", 2
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	}
	r, ok := unit(b)
	if !ok {
		return `\`, 1
	}
	if low, ok := unit(b[6:]); r >= 0xD800 && r < 0xDC00 && ok && low >= 0xDC00 && low < 0xE000 {
		return string(0x10000 + (r-0xD800)<<10 + low - 0xDC00), 12
	}
	return string(r), 6 // U+FFFD for a lone surrogate
}

// unit returns the value of \uXXXX at the start of b.
func unit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return utf8.RuneError, false
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(v), err == nil
}
