package agents

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
)

// Object has the members of a JSON object, found in one pass.
type Object []rawjson.Member

// usualMembers is how many members most records of agents have at most.
const usualMembers = 16

// Read returns the members of an object, or none.
func Read(v rawjson.Value) Object { return Object(nil).Read(v) }

// Read is the function Read in the memory of an Object that is not used any more.
func (o Object) Read(v rawjson.Value) Object {
	if cap(o) == 0 {
		o = make(Object, 0, usualMembers)
	}
	o = o[:0]
	for m := range v.EachMember {
		o = append(o, m)
	}
	return o
}

// Member returns the value of a member, the last one of several, or nil. It compares the text of the keys, so it finds no
// key with escapes in it, which no client writes.
func (o Object) Member(key string) rawjson.Value {
	for i := len(o) - 1; i >= 0; i-- {
		quoted := o[i].Key
		if len(quoted) == len(key)+2 && string(quoted[1:len(quoted)-1]) == key {
			return o[i].Value
		}
	}
	return nil
}

// AnyOf returns the first one of some members that is not missing.
func (o Object) AnyOf(keys ...string) rawjson.Value {
	for _, key := range keys {
		v := o.Member(key)
		if !v.Missing() {
			return v
		}
	}
	return nil
}

// ObjectIn returns the JSON object in a text, without the blanks around it, or nil.
func ObjectIn(text []byte) rawjson.Value {
	v := rawjson.Value(bytes.TrimSpace(text))
	if len(v) == 0 || v[0] != '{' || !rawjson.IsValidObject(v) {
		return nil
	}
	return v
}
