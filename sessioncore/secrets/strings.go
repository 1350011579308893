package secrets

import (
	"bytes"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// jsonString is a string in a line of JSON.
type jsonString struct {
	start, end int  // of its body in the line, without quotes
	isKey      bool // it is the key of a member
}

// stringPlace is the position of a string in a line: the line itself, then each value around the string.
type stringPlace []level

type level struct {
	object   bool
	key      []byte // the body of the current member's key
	isMember bool   // the colon after the key was passed
	number   int    // of the current element
	name     []byte // the value of the member "name" or "key", which names "value": {"name":"TOKEN","value":"x"}
}

// isWhole reports whether a line is exactly one object or array.
func isWhole(line []byte) bool {
	v := rawjson.Value(bytes.TrimSpace(line))
	if !v.IsObject() && !v.IsArray() {
		return false
	}
	var s rawjson.Scanner
	end, status := s.SkipValue(v, 0)
	return status == rawjson.OK && end == len(v)
}

// eachString calls visit for the strings in a line, keys included, even if it is not valid JSON. The place is valid
// during the call only.
func eachString(line []byte, visit func(jsonString, stringPlace)) {
	at := make(stringPlace, 1, 16)
	for i := 0; i < len(line); i++ {
		top := &at[len(at)-1]
		switch c := line[i]; c {
		case '"':
			s := jsonString{
				start: i + 1,
				end:   stringEnd(line, i+1),
				isKey: top.object && !top.isMember,
			}
			visit(s, at)
			if s.isKey {
				top.key = line[s.start:s.end]
			} else if string(top.key) == "name" || string(top.key) == "key" {
				top.name = line[s.start:s.end]
			}
			i = s.end
		case '{', '[':
			at = append(at, level{object: c == '{'})
		case '}', ']':
			at = at[:max(1, len(at)-1)]
		case ',':
			top.number++
			top.isMember = false
		case ':':
			top.isMember = true
		}
	}
}

// stringEnd returns the end of a string's body at i: its quote, or the end of the line.
func stringEnd(line []byte, i int) int {
	for i < len(line) && line[i] != '"' {
		if line[i] == '\\' {
			i++ // the escaped byte may be a quote
		}
		i++
	}
	return min(i, len(line)) // a backslash may end the line
}

// key returns the key of the innermost object around the value, nil if there is none. In {"name":"TOKEN",
// "value":"x"} it is TOKEN for x.
func (p stringPlace) key() []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].object && p[i].name != nil && string(p[i].key) == "value" {
			return p[i].name
		}
		if p[i].object {
			return p[i].key
		}
	}
	return nil
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns the JSON pointer (RFC 6901) of a value, with each key passed through clean. A long one is cut
// and ends in "…".
func (p stringPlace) pointer(clean func(string) string) string {
	var out []byte
	for _, l := range p[1:] {
		out = append(out, '/')
		if l.object {
			key := clean(string(decode(nil, l.key)))
			out = append(out, pointerEscapes.Replace(key)...)
		} else {
			out = strconv.AppendInt(out, int64(l.number), 10)
		}
		if len(out) > maxPointer {
			return string(out[:maxPointer]) + "…"
		}
	}
	return string(out)
}

// maxPointer bounds a pointer in bytes, as keys can be long and nest deeply.
const maxPointer = 500

// decode appends the text of a string's body to dst. Other bytes than escapes are copied.
func decode(dst, body []byte) []byte {
	for len(body) > 0 {
		plain := bytes.IndexByte(body, '\\')
		if plain < 0 {
			return append(dst, body...)
		}
		n := escapeLen(body[plain:])
		dst = append(dst, body[:plain]...)
		dst = appendPiece(dst, body[plain:plain+n])
		body = body[plain+n:]
	}
	return dst
}

// escapeLen returns the length of the escape, or pair of them, at the start of b, or 1 for a
// backslash that begins none.
func escapeLen(b []byte) int {
	_, size := rawjson.ReadEscape(b)
	if size > 0 {
		return size
	}
	n, _ := rawjson.EscapeLen(b)
	return max(n, 1)
}

// appendPiece appends the text of a byte or an escape.
func appendPiece(dst, piece []byte) []byte {
	if len(piece) == 1 {
		return append(dst, piece...)
	}
	return rawjson.AppendDecoded(dst, piece)
}

// encodedAt maps offsets in a string's text to its body. Offsets must ascend.
type encodedAt struct{ body, text int }

// seek returns the range in body of the byte or escape that holds byte off of the text, and goes on there. Beyond
// the text it returns the end of body.
func (e *encodedAt) seek(body []byte, off int) (start, end int) {
	var piece [4]byte // room for a character, without an allocation
	for e.body < len(body) {
		n := 1
		size := 1
		if body[e.body] == '\\' {
			n = escapeLen(body[e.body:])
			size = len(appendPiece(piece[:0], body[e.body:e.body+n]))
		}
		if off < e.text+size {
			return e.body, e.body + n
		}
		e.body += n
		e.text += size
	}
	return e.body, e.body
}
