package rawjson

import "strings"

// Keys, roles and types are written in camelCase or in snake_case (docs/design.md section 9). Code that shows them
// to people accepts both, whatever the header says.

// Name returns the member's key in camelCase.
func (m Member) Name() string {
	text, _ := m.Key.Bytes()
	return CamelCase(string(text))
}

// longestName is longer than any name in the format, in bytes.
const longestName = 64

// CamelCase converts snake_case to camelCase. The dialects differ in nothing else.
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

// AnyOf returns the value of the first of the keys that the object has, nil if it has none of them.
func (v Value) AnyOf(keys ...string) Value {
	for _, key := range keys {
		if found := v.Member(key); found != nil {
			return found
		}
	}
	return nil
}
