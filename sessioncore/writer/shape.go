package writer

import (
	"fmt"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// shape is what an object must be: rules for its members, and more of them by what one member says.
type shape struct {
	fields []fieldRule
	by     *variants
}

// variants are shapes by the text of a member.
type variants struct {
	key string
	of  map[string]*shape
	// others: texts without a shape are good too. Else they are refused, and an error lists the known ones.
	others bool
}

// fieldRule says what a member of an object must be. Members without a rule may be anything.
type fieldRule struct {
	key      string
	kinds    rawjson.Kinds
	optional bool
	notEmpty bool          // of a string
	elements rawjson.Kinds // of an array; 0: anything
	each     *shape        // of the objects in an array
	members  []fieldRule   // of an object
	object   *shape        // of an object, where rules for members do not say it
	// fill is the member as JSON that is added where there is none, "" for nothing: what clients cannot do
	// without, and can be given without saying anything that was not said.
	fill string
}

// check holds an object against rules. path is the object's own, "" for the line.
func check(object rawjson.Value, path string, rules []fieldRule) error {
	_, err := (&shape{fields: rules}).check(object, path, nil, nil)
	return err
}

// check holds an object against a shape, and returns fills with those that it needs. They are edits of text,
// which the object is a part of; nil where nothing is to be filled in.
func (s *shape) check(object rawjson.Value, path string, text rawjson.Value, fills rawjson.Edits) (rawjson.Edits, error) {
	found := s.pick(object)
	var add []byte
	for i := range s.fields {
		r := &s.fields[i]
		if len(found[i]) == 0 && r.fill != "" {
			add = rawjson.AppendListed(add, r.fill)
		}
		var err error
		if fills, err = r.check(path, found[i], text, fills); err != nil {
			return fills, err
		}
	}
	if text != nil && len(add) > 0 {
		fills = fills.Object(object, object.OffsetIn(text), string(add), func(rawjson.Member) bool { return false })
	}
	if s.by == nil {
		return fills, nil
	}
	return s.by.check(object, found[len(s.fields)], path, text, fills)
}

// pick returns the members that a shape names, in one pass over the object; the last of repeated ones. That
// which tells variants apart is the last one.
func (s *shape) pick(object rawjson.Value) []rawjson.Value {
	found := make([]rawjson.Value, len(s.fields), len(s.fields)+1)
	if s.by != nil {
		found = append(found, nil)
	}
	object.EachMember(func(m rawjson.Member) bool {
		for i := range s.fields {
			if m.KeyIs(s.fields[i].key) {
				found[i] = m.Value
			}
		}
		if s.by != nil && m.KeyIs(s.by.key) {
			found[len(s.fields)] = m.Value
		}
		return true
	})
	return found
}

// check holds an object against the shape that goes with its key's value.
func (v *variants) check(object, which rawjson.Value, path string, text rawjson.Value, fills rawjson.Edits) (rawjson.Edits, error) {
	if name, ok := which.Text(); ok {
		if variant := v.of[name]; variant != nil {
			return variant.check(object, path, text, fills)
		}
	}
	if v.others {
		return fills, nil
	}
	err := &FieldError{Field: joinPath(path, v.key), Want: v.names(), Got: "none"}
	if len(which) > 0 {
		err.Got = shortened(which)
	}
	return fills, err
}

// names are the texts that there are variants of.
func (v *variants) names() string {
	names := make([]string, 0, len(v.of))
	for name := range v.of {
		names = append(names, name)
	}
	slices.Sort(names)
	return "one of " + strings.Join(names, ", ")
}

func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (r *fieldRule) check(path string, v, text rawjson.Value, fills rawjson.Edits) (rawjson.Edits, error) {
	path = joinPath(path, r.key)
	kind := v.Kind()
	switch {
	case kind == 0 && (r.optional || r.fill != ""):
		return fills, nil
	case kind == 0:
		return fills, &FieldError{Field: path, Want: r.kinds.String(), Got: "none"}
	case kind&r.kinds == 0:
		return fills, &FieldError{Field: path, Want: r.kinds.String(), Got: kind.String()}
	case r.notEmpty && string(v) == `""`:
		return fills, &FieldError{Field: path, Want: "a string that is not empty"}
	case kind == rawjson.Object && r.members != nil:
		return fills, check(v, path, r.members)
	case kind == rawjson.Object && r.object != nil:
		return r.object.check(v, path, text, fills)
	case kind == rawjson.Array && r.elements != 0:
		return r.checkElements(path, v, text, fills)
	}
	return fills, nil
}

// checkElements holds the elements of an array against a rule: first what kinds they are of.
func (r *fieldRule) checkElements(path string, array, text rawjson.Value, fills rawjson.Edits) (rawjson.Edits, error) {
	var err error
	at := 0
	array.EachElement(func(element rawjson.Value, _ int) bool {
		if k := element.Kind(); k&r.elements == 0 {
			err = &FieldError{Field: fmt.Sprintf("%s[%d]", path, at), Want: r.elements.String(), Got: k.String()}
		}
		at++
		return err == nil
	})
	if err != nil || r.each == nil {
		return fills, err
	}
	at = 0
	array.EachElement(func(element rawjson.Value, _ int) bool {
		if element.IsObject() {
			fills, err = r.each.check(element, fmt.Sprintf("%s[%d]", path, at), text, fills)
		}
		at++
		return err == nil
	})
	return fills, err
}
