package rawjson

import (
	"bytes"
	"strconv"
)

// Value is the text of one validated JSON value without white space around it; nil stands for an
// absent one. All looks into a value go through the methods here, which neither copy nor recurse.
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

// IsNull reports whether v is null, and not absent.
func (v Value) IsNull() bool { return len(v) > 0 && v[0] == 'n' }

// Missing reports whether v is absent or null: what JavaScript's ?? passes over.
func (v Value) Missing() bool { return len(v) == 0 || v[0] == 'n' }

// Text returns a string value's text as WTF-8; ok is false where v is no string.
func (v Value) Text() (text string, ok bool) {
	if !v.IsString() {
		return "", false
	}
	return string(AppendDecoded(nil, v[1:len(v)-1])), true
}

// Bytes is text without a copy where the text stands in the file as it is.
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

// Member returns the value of the last member of object v with that key (of repeated keys the last
// counts), nil where there is none or v is no object.
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

// Member is one key and value of an object, with the places where they stand in it.
type Member struct {
	Key        Value // with its quotes
	Value      Value
	start, End int // of key and value, in the object's text
}

// KeyIs reports whether the key is the one given, however it is escaped.
func (m Member) KeyIs(key string) bool { return m.Key.Is(key) }

// EachMember calls f for each member in order until f returns false. v must be validated.
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
		i = SkipSpace(v, i+1) // over the colon
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

// EachElement calls f for each element of an array in order, with its offset, until f returns false.
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

// OffsetIn returns where v, a slice of text, begins in it. Both run on to the end of the same memory,
// so the difference of what lies behind their starts tells.
func (v Value) OffsetIn(text Value) int { return cap(text) - cap(v) }

// Truthy is what JavaScript takes for true.
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

// AsKey is what JavaScript makes of a value where it needs a string: a key, a part of a template.
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
