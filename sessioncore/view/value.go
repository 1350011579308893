package view

import (
	"bytes"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

const (
	// maxValue is how many bytes of a JSON value are shown.
	maxValue = 32 << 10
	// maxCompact is how many bytes of a nested value are shown.
	maxCompact = 4 << 10
	// maxKey is how many characters of a key are shown.
	maxKey = 100
)

// valueText renders a JSON value for people: the members of an object as "key: value", or as a key
// with an indented block below it if the value is a text of several lines. A list of objects, as
// editing tools take it, is rendered in the same way, one element after the other; other values are
// JSON.
type valueText struct {
	b    *builder
	out  []byte
	left int // maximum size of out
}

// write writes a value as text.
func (t *valueText) write(v rawjson.Value) {
	switch {
	case v.IsObject():
		t.members(v, "", "")
	case v.IsString():
		t.out = append(t.out, t.b.shortened(v)...)
		t.out = append(t.out, '\n')
	default:
		t.compact(v)
	}
}

// members writes the members of an object, the first one after the text first, the others after
// indent.
func (t *valueText) members(v rawjson.Value, first, indent string) {
	before := first
	n := 0
	for m := range v.EachMember {
		t.out = append(t.out, before...)
		t.out = append(t.out, shownLine(m.Key, maxKey)...)
		t.out = append(t.out, ':')
		before = indent
		n++
		if isSealed(m) {
			t.out = append(t.out, " encrypted, "+sizeText(len(m.Value)-len(`""`))+"\n"...)
			continue
		}
		t.member(m.Value, indent)
		if !t.room() {
			break
		}
	}
	if n == 0 {
		t.out = append(t.out, first...)
		t.out = append(t.out, "{}\n"...)
	}
}

// isSealed reports whether a member is ciphertext of a provider, which is no text.
func isSealed(m rawjson.Member) bool {
	if !m.Value.IsString() {
		return false
	}
	name := m.Name()
	return name == "encryptedContent" || name == "encryptedIndex"
}

// member writes a member's value after its key.
func (t *valueText) member(v rawjson.Value, indent string) {
	switch {
	case v.IsString():
		t.block(t.b.shortened(v), indent+"  ")
	case indent == "" && isListOfObjects(v):
		t.out = append(t.out, '\n')
		for e := range v.EachElement {
			t.members(e, "- ", "  ")
			if !t.room() {
				break
			}
		}
	default:
		t.out = append(t.out, ' ')
		t.compact(v)
	}
}

// isListOfObjects reports whether a value is a list of objects alone, of one at least.
func isListOfObjects(v rawjson.Value) bool {
	count := 0
	for e := range v.EachElement {
		if !e.IsObject() {
			return false
		}
		count++
	}
	return count > 0
}

// room reports whether more may be written. If not, it writes an ellipsis once, and notes that the entry is cut.
func (t *valueText) room() bool {
	if len(t.out) <= t.left {
		return true
	}
	if !bytes.HasSuffix(t.out, []byte("…\n")) {
		t.out = append(t.out, "…\n"...)
	}
	t.b.cut = true
	return false
}

// block writes a text after its key, or below it if it has several lines.
func (t *valueText) block(text []byte, indent string) {
	if bytes.IndexByte(text, '\n') < 0 {
		t.out = append(t.out, ' ')
		t.out = append(t.out, text...)
		t.out = append(t.out, '\n')
		return
	}
	t.out = append(t.out, '\n')
	for line := range bytes.Lines(text) {
		if line[0] != '\n' {
			t.out = append(t.out, indent...)
		}
		t.out = append(t.out, line...)
	}
	t.out = append(t.out, '\n')
}

// shortened returns a string's visible text, for a long string its head and tail.
func (b *builder) shortened(v rawjson.Value) []byte {
	shown := excerptOf(v, outputLimits)
	text := shown.head
	if shown.left > 0 {
		b.cut = true
		text = bytes.TrimSuffix(text, []byte("\n"))
		text = append(text, "\n… "+sizeText(shown.left)+" left out …\n"...)
		text = append(text, shown.tail...)
	}
	return bytes.TrimRight(text, "\n")
}

// compact writes a value as JSON on one line.
func (t *valueText) compact(v rawjson.Value) {
	isCut := len(v) > maxCompact
	if isCut {
		v = v[:maxCompact]
		t.b.cut = true
	}
	text := rawjson.AppendUTF8(nil, compactJSON(v))
	t.out = markdown.AppendLine(t.out, markdown.Visible(text), maxCompact)
	if isCut {
		t.out = append(t.out, "…"...)
	}
	t.out = append(t.out, '\n')
}

// isBlank reports whether a byte is white space of JSON.
func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// compactJSON returns JSON, which may be cut off anywhere, without white space between tokens.
func compactJSON(text []byte) []byte {
	compact := make([]byte, 0, len(text))
	inString := false
	escaped := false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
		case !inString && isBlank(c):
			continue
		}
		compact = append(compact, c)
	}
	return compact
}
