package sessioncore

import "strings"

// Keys, roles and types are written in camelCase or in snake_case (design.md section 9, dialects). What is
// shown to people reads both, whatever the header says.

// name returns a member's key in camelCase.
func (m member) name() string {
	text, _ := m.key.bytes()
	return inCamelCase(string(text))
}

// longestName is longer than any name that the format has, in bytes.
const longestName = 64

// inCamelCase turns snake_case into camelCase: the dialects differ in nothing else.
func inCamelCase(name string) string {
	for len(name) <= longestName {
		i := strings.IndexByte(name, '_')
		if i < 1 || i+1 == len(name) {
			break
		}
		name = name[:i] + strings.ToUpper(name[i+1:i+2]) + name[i+2:]
	}
	return name
}

// anyOf returns the value of the first of those keys that an object has.
func (v value) anyOf(keys ...string) value {
	for _, key := range keys {
		if found := v.member(key); found != nil {
			return found
		}
	}
	return nil
}
