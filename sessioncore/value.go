package sessioncore

import (
	"bytes"
	"strconv"
)

// value is the text of one validated JSON value without white space around it; nil stands for an
// absent one. All looks into a value go through the methods here, which neither copy nor recurse.
type value []byte

func (v value) isObject() bool { return len(v) > 0 && v[0] == '{' }
func (v value) isArray() bool  { return len(v) > 0 && v[0] == '[' }
func (v value) isString() bool { return len(v) > 0 && v[0] == '"' }
func (v value) isNumber() bool {
	return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9')
}

func (v value) isNull() bool { return len(v) > 0 && v[0] == 'n' }

// missing: absent or null, what JavaScript's ?? passes over.
func (v value) missing() bool { return len(v) == 0 || v[0] == 'n' }

// text returns a string value's text as WTF-8; ok is false where v is no string.
func (v value) text() (text string, ok bool) {
	if !v.isString() {
		return "", false
	}
	return string(decodeString(nil, v[1:len(v)-1])), true
}

// bytes is text without a copy where the text stands in the file as it is.
func (v value) bytes() (text []byte, ok bool) {
	if !v.isString() {
		return nil, false
	}
	body := v[1 : len(v)-1]
	for _, c := range body {
		if c == '\\' || c >= 0x80 {
			return decodeString(nil, body), true
		}
	}
	return body, true
}

// is reports whether v is a string whose text is want.
func (v value) is(want string) bool {
	if !v.isString() {
		return false
	}
	body := v[1 : len(v)-1]
	if bytes.IndexByte(body, '\\') < 0 {
		return string(body) == want
	}
	text, _ := v.text()
	return text == want
}

// member returns the value of the last member of object v with that key (of repeated keys the last
// counts), nil where there is none or v is no object.
func (v value) member(key string) value {
	var found value
	v.eachMember(func(m member) bool {
		if m.keyIs(key) {
			found = m.value
		}
		return true
	})
	return found
}

// member is one key and value of an object, with the places where they stand in it.
type member struct {
	key        value // with its quotes
	value      value
	start, end int // of key and value, in the object's text
}

func (m member) keyIs(key string) bool { return m.key.is(key) }

// eachMember calls f for each member in order until f returns false. v must be validated.
func (v value) eachMember(f func(member) bool) {
	if !v.isObject() {
		return
	}
	var s scanner
	i := skipSpace(v, 1)
	for v[i] != '}' {
		m := member{start: i}
		keyEnd, _ := s.skipString(v, i+1)
		m.key = v[i:keyEnd]
		i = skipSpace(v, keyEnd)
		i = skipSpace(v, i+1) // over the colon
		m.end, _ = s.skipValue(v, i)
		m.value = v[i:m.end]
		if !f(m) {
			return
		}
		if i = skipSpace(v, m.end); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
}

// eachElement calls f for each element of an array in order, with its offset, until f returns false.
func (v value) eachElement(f func(element value, offset int) bool) {
	if !v.isArray() {
		return
	}
	var s scanner
	i := skipSpace(v, 1)
	for v[i] != ']' {
		end, _ := s.skipValue(v, i)
		if !f(v[i:end], i) {
			return
		}
		if i = skipSpace(v, end); v[i] == ',' {
			i = skipSpace(v, i+1)
		}
	}
}

// offsetIn returns where v, a slice of text, begins in it. Both run on to the end of the same memory,
// so the difference of what lies behind their starts tells.
func (v value) offsetIn(text value) int { return cap(text) - cap(v) }

// truthy is what JavaScript takes for true.
func (v value) truthy() bool {
	switch {
	case len(v) == 0 || v[0] == 'n' || v[0] == 'f' || string(v) == `""`:
		return false
	case v.isNumber():
		f, _ := strconv.ParseFloat(string(v), 64)
		return f != 0
	}
	return true
}

// asKey is what JavaScript makes of a value where it needs a string: a key, a part of a template.
func (v value) asKey() string {
	switch {
	case len(v) == 0:
		return "undefined"
	case v.isString():
		text, _ := v.text()
		return text
	case v.isObject():
		return "[object Object]"
	}
	return string(v)
}
