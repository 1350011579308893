package rawjson

import "strings"

// Kinds is a set of the kinds of JSON values.
type Kinds uint8

// The kinds.
const (
	String Kinds = 1 << iota
	Number
	Bool
	Object
	Array
	Null
)

var kindNames = [...]string{"a string", "a number", "true or false", "an object", "an array", "null"}

// String returns the kinds for people to read, as in "a string or null".
func (k Kinds) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// Kind returns the kind of a value, 0 for nil.
func (v Value) Kind() Kinds {
	switch {
	case len(v) == 0:
		return 0
	case v.IsString():
		return String
	case v.IsObject():
		return Object
	case v.IsArray():
		return Array
	case v[0] == 'n':
		return Null
	case v[0] == 't' || v[0] == 'f':
		return Bool
	}
	return Number
}
