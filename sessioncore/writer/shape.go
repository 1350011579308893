package writer

import (
	"fmt"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// shape describes what an object must be: rules for its members, and further ones that depend on one member.
type shape struct {
	fields []fieldRule
	by     *variants
}

// variants are shapes selected by the text of a member.
type variants struct {
	key string
	of  map[string]*shape
	// others permits texts without a shape. Otherwise they are refused, and the error lists the known ones.
	others bool
}

// fieldRule describes what a member of an object must be. Members without a rule may have any value.
type fieldRule struct {
	key      string
	kinds    rawjson.Kinds
	optional bool
	notEmpty bool          // for a string
	elements rawjson.Kinds // for an array; 0 for any
	each     *shape        // for the objects in an array
	object   *shape        // for an object; nil for any
	// fill is a member as JSON that is added if it is missing, "" for none: one that clients require and that can be
	// added without changing the meaning.
	fill string
}

// of is a shape with these rules alone.
func of(fields ...fieldRule) *shape { return &shape{fields: fields} }

// check checks an object against rules. path is the path of the object, "" for the line.
func check(object rawjson.Value, path string, rules []fieldRule) error {
	_, err := of(rules...).check(object, path, nil, nil)
	return err
}

// check checks an object against a shape, and appends the fills that it needs to fills, as edits of text, which
// contains the object. If text is nil, nothing is filled in.
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

// pick returns the members that have rules, in one pass over the object, followed by the member that selects the
// variant, if there are variants. Of repeated members it returns the last.
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

// check checks an object against the shape that which, the value of its member v.key, selects.
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

// names lists the texts that have a shape.
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
	case kind == rawjson.Object && r.object != nil:
		return r.object.check(v, path, text, fills)
	case kind == rawjson.Array && r.elements != 0:
		return r.checkElements(path, v, text, fills)
	}
	return fills, nil
}

// checkElements checks the elements of an array: first the kinds of all, then each of them.
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
