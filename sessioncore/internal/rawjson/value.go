package rawjson

import (
	"bytes"
	"strconv"
)

// Value is the text of one validated JSON value without white space around it, or nil if the value is absent. Its
// methods neither copy nor recurse, unless they say so.
type Value []byte

// IsObject reports whether v is an object.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// IsArray reports whether v is an array.
func (v Value) IsArray() bool { return len(v) > 0 && v[0] == '[' }

// IsString reports whether v is a string.
func (v Value) IsString() bool { return len(v) > 0 && v[0] == '"' }

// IsNumber reports whether v is a number.
func (v Value) IsNumber() bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

// IsNull reports whether v is null. It returns false for an absent value.
func (v Value) IsNull() bool { return len(v) > 0 && v[0] == 'n' }

// Missing reports whether v is absent or null, like the left operand of JavaScript's ??.
func (v Value) Missing() bool { return len(v) == 0 || v[0] == 'n' }

// Text returns the text of a string as WTF-8. ok is false if v is not a string.
func (v Value) Text() (text string, ok bool) {
	if !v.IsString() {
		return "", false
	}
	return string(AppendDecoded(nil, v[1:len(v)-1])), true
}

// Bytes is like Text, but does not copy the text if the file has it unescaped and in ASCII.
func (v Value) Bytes() (text []byte, ok bool) {
	if !v.IsString() {
		return nil, false
	}
	body := v[1 : len(v)-1]
	for _, c := range body {
		if c == '\\' || c >= 0x80 {
			return AppendDecoded(nil, body), true
		}
	}
	return body, true
}

// Is reports whether v is a string whose text is want.
func (v Value) Is(want string) bool {
	if !v.IsString() {
		return false
	}
	body := v[1 : len(v)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body) == want
	}
	text, _ := v.Text()
	return text == want
}

// Member returns the value of the member of object v with that key, the last one if the key is repeated, or nil if
// there is none or v is not an object.
func (v Value) Member(key string) Value {
	var found Value
	v.EachMember(func(m Member) bool {
		if m.KeyIs(key) {
			found = m.Value
		}
		return true
	})
	return found
}

// Member is a member of an object: its key and value, and their position in the object's text.
type Member struct {
	Key        Value // with its quotes
	Value      Value
	start, End int // of key and value, in the object's text
}

// KeyIs reports whether the key is key, however it is escaped.
func (m Member) KeyIs(key string) bool { return m.Key.Is(key) }

// EachMember calls f for each member of an object in order until f returns false. v must be validated.
func (v Value) EachMember(f func(Member) bool) {
	if !v.IsObject() {
		return
	}
	var s Scanner
	i := SkipSpace(v, 1)
	for v[i] != '}' {
		m := Member{start: i}
		keyEnd, _ := s.SkipString(v, i+1)
		m.Key = v[i:keyEnd]
		i = SkipSpace(v, keyEnd)
		i = SkipSpace(v, i+1) // after the colon
		m.End, _ = s.SkipValue(v, i)
		m.Value = v[i:m.End]
		if !f(m) {
			return
		}
		if i = SkipSpace(v, m.End); v[i] == ',' {
			i = SkipSpace(v, i+1)
		}
	}
}

// EachElement calls f for each element of an array and its offset, in order, until f returns false.
func (v Value) EachElement(f func(element Value, offset int) bool) {
	if !v.IsArray() {
		return
	}
	var s Scanner
	i := SkipSpace(v, 1)
	for v[i] != ']' {
		end, _ := s.SkipValue(v, i)
		if !f(v[i:end], i) {
			return
		}
		if i = SkipSpace(v, end); v[i] == ',' {
			i = SkipSpace(v, i+1)
		}
	}
}

// OffsetIn returns the offset of v, a slice of text, in text. Both have the same end of capacity, so the difference
// of their capacities is the offset.
func (v Value) OffsetIn(text Value) int { return cap(text) - cap(v) }

// Truthy reports whether JavaScript converts v to true.
func (v Value) Truthy() bool {
	switch {
	case len(v) == 0 || v[0] == 'n' || v[0] == 'f' || string(v) == `""`:
		return false
	case v.IsNumber():
		f, _ := strconv.ParseFloat(string(v), 64)
		return f != 0
	}
	return true
}

// AsKey returns the string to which JavaScript converts v, as in a key or a template. Arrays keep their JSON text.
func (v Value) AsKey() string {
	switch {
	case len(v) == 0:
		return "undefined"
	case v.IsString():
		text, _ := v.Text()
		return text
	case v.IsObject():
		return "[object Object]"
	}
	return string(v)
}
