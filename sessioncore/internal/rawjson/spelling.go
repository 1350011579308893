package rawjson

import "strings"

// Keys, roles and types are written in camelCase or in snake_case (docs/design.md section 9). What is
// shown to people reads both, whatever the header says.

// Name returns a member's key in camelCase.
func (m Member) Name() string {
	text, _ := m.Key.Bytes()
	return CamelCase(string(text))
}

// longestName is longer than any name that the format has, in bytes.
const longestName = 64

// CamelCase turns snake_case into camelCase: the dialects differ in nothing else.
func CamelCase(name string) string {
	for len(name) <= longestName {
		i := strings.IndexByte(name, '_')
		if i < 1 || i+1 == len(name) {
			break
		}
		name = name[:i] + strings.ToUpper(name[i+1:i+2]) + name[i+2:]
	}
	return name
}

// AnyOf returns the value of the first of those keys that an object has.
func (v Value) AnyOf(keys ...string) Value {
	for _, key := range keys {
		if found := v.Member(key); found != nil {
			return found
		}
	}
	return nil
}
