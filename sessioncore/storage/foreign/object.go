package foreign

import "sessionfs/sessioncore/internal/rawjson"

// Object has the members of a JSON object, found in one pass over it.
type Object []rawjson.Member

// Read returns the members of an object, none for another value.
func Read(v rawjson.Value) Object { return make(Object, 0, 16).Read(v) }

// Read is the function in the memory of an object that is of no use any more.
func (o Object) Read(v rawjson.Value) Object {
	o = o[:0]
	v.EachMember(func(m rawjson.Member) bool {
		o = append(o, m)
		return true
	})
	return o
}

// Member returns the value of a member, nil if there is none. Of those with the same key the last one counts.
func (o Object) Member(key string) rawjson.Value {
	for i := len(o) - 1; i >= 0; i-- {
		if k := o[i].Key; len(k) == len(key)+2 && string(k[1:len(k)-1]) == key {
			return o[i].Value
		}
	}
	return nil
}

// AnyOf returns the first of some members that is there.
func (o Object) AnyOf(keys ...string) rawjson.Value {
	for _, key := range keys {
		if v := o.Member(key); len(v) > 0 {
			return v
		}
	}
	return nil
}
