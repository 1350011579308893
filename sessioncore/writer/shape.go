package writer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// shape is a list of rules for the members of an object, and variants selected by one member.
// Members without a rule may have any value.
//
// Its notation is a list of members. `summary` must be a string; `n:number` or `n:string|null` has
// another kind, `n:usage` is an object of the shape usage, `n:[image]` an array of such objects,
// `n:[string]` of strings, and `n:any|usage` anything, but of that shape if it is an object. After
// the name, ! forbids an empty string, - permits that it is missing, ? also null, and + adds it if
// it is missing. `@role=message` selects a variant by the text of role: message/user,
// message/assistant and so on. Other texts are errors, which list the known ones, but not for
// `@role=message*`.
type shape struct {
	members  []memberRule
	by       string // the member that selects a variant; "" for none
	variants map[string]*shape
	isOpen   bool // texts without a variant are permitted
}

// memberRule is the rule for a member of an object.
type memberRule struct {
	key      string
	kinds    rawjson.Kinds
	optional bool
	notEmpty bool          // for a string
	elements rawjson.Kinds // for an array; 0 for any
	each     *shape        // for the objects in an array; nil for any
	object   *shape        // for an object; nil for any
	fill     string        // JSON of the member, added if it is missing, as clients need it; "" for none
}

// parseShapes parses a table of shapes by name. A line has one or several names and, after "=", the
// members. A line that begins with a tab continues the one before, and # begins a comment.
func parseShapes(table string) map[string]*shape {
	shapes := map[string]*shape{}
	texts := map[string]string{}
	for line := range strings.SplitSeq(strings.ReplaceAll(table, "\n\t", " "), "\n") {
		names, text, isShape := strings.Cut(line, " =")
		if !isShape || line[0] == '#' {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			name = strings.TrimSpace(name)
			shapes[name] = &shape{}
			texts[name] = text
		}
	}
	for name, text := range texts {
		*shapes[name] = parseShape(text, shapes)
	}
	return shapes
}

// parseShape parses a shape, which may refer to those in shapes.
func parseShape(text string, shapes map[string]*shape) (s shape) {
	for token := range strings.FieldsSeq(text) {
		by, isVariants := strings.CutPrefix(token, "@")
		if !isVariants {
			s.members = append(s.members, parseMember(token, shapes))
			continue
		}
		key, prefix, _ := strings.Cut(by, "=")
		prefix, s.isOpen = strings.CutSuffix(prefix, "*")
		s.by = key
		s.variants = map[string]*shape{}
		for name, other := range shapes {
			variant, ok := strings.CutPrefix(name, prefix+"/")
			if ok {
				s.variants[variant] = other
			}
		}
	}
	return s
}

// namedKinds are the kinds of values by their names in the notation.
var namedKinds = map[string]rawjson.Kinds{
	"string": rawjson.String, "number": rawjson.Number, "bool": rawjson.Bool, "object": rawjson.Object,
	"array": rawjson.Array, "null": rawjson.Null, "any": ^rawjson.Kinds(0),
}

// parseMember parses the rule of a member in the notation of shape, such as "n:string|null" or "id!".
func parseMember(token string, shapes map[string]*shape) memberRule {
	name, kinds, hasKinds := strings.Cut(token, ":")
	if !hasKinds {
		kinds = "string"
	}
	r := memberRule{key: strings.TrimRight(name, "!-?+")}
	marks := name[len(r.key):]
	r.notEmpty = strings.Contains(marks, "!")
	r.optional = strings.ContainsAny(marks, "-?")
	if strings.Contains(marks, "?") {
		r.kinds = rawjson.Null
	}
	if strings.Contains(marks, "+") {
		r.fill = fills[r.key]
	}
	for name := range strings.SplitSeq(kinds, "|") {
		inside, isArray := strings.CutPrefix(name, "[")
		if isArray {
			element := strings.TrimSuffix(inside, "]")
			r.elements, r.each = kindNamed(element, shapes)
			r.kinds |= rawjson.Array
			continue
		}
		kind, object := kindNamed(name, shapes)
		r.kinds |= kind
		if object != nil {
			r.object = object
		}
	}
	return r
}

// kindNamed returns the kind with a name in the notation. The name of a shape means an object, and the
// shape is returned too. It panics for any other name, as the table is a part of the program.
func kindNamed(name string, shapes map[string]*shape) (rawjson.Kinds, *shape) {
	kind, isKind := namedKinds[name]
	if isKind {
		return kind, nil
	}
	object := shapes[name]
	if object == nil {
		panic("no shape has the name " + name)
	}
	return rawjson.Object, object
}

// check returns a FieldError for the first member of an object that breaks a rule.
func (s *shape) check(object rawjson.Value) error {
	c := &shapeChecker{}
	return c.object(s, object, "")
}

// shapeChecker checks an object and collects the members to be added.
type shapeChecker struct {
	text  rawjson.Value // nil to add no members
	fills rawjson.Edits
}

// object checks an object, its members in the order of the rules and then its variant. path is its path
// for errors, "" for the line. The error is a FieldError.
func (c *shapeChecker) object(s *shape, object rawjson.Value, path string) error {
	// The last of repeated members counts.
	found := make([]rawjson.Value, len(s.members))
	var selector rawjson.Value
	for m := range object.EachMember {
		for i := range s.members {
			if m.KeyIs(s.members[i].key) {
				found[i] = m.Value
			}
		}
		if s.by != "" && m.KeyIs(s.by) {
			selector = m.Value
		}
	}
	var add []byte
	for i := range s.members {
		r := &s.members[i]
		if len(found[i]) == 0 && r.fill != "" {
			add = rawjson.AppendListed(add, r.fill)
			continue
		}
		err := c.member(r, found[i], joinPath(path, r.key))
		if err != nil {
			return err
		}
	}
	if c.text != nil && len(add) > 0 {
		c.add(object, string(add))
	}
	if s.by == "" {
		return nil
	}
	name, isText := selector.Text()
	variant := s.variants[name]
	if isText && variant != nil {
		return c.object(variant, object, path)
	}
	if s.isOpen {
		return nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(s.variants)), ", ")
	err := &FieldError{Field: joinPath(path, s.by), Want: "one of " + names, Got: "none"}
	if len(selector) > 0 {
		err.Got = shortened(selector)
	}
	return err
}

// add adds members to an object of the text.
func (c *shapeChecker) add(object rawjson.Value, members string) {
	keep := func(rawjson.Member) bool { return false }
	c.fills = c.fills.Object(object, object.OffsetIn(c.text), members, keep)
}

// joinPath returns the path of a member of the object with a path, "" for the line.
func joinPath(path, key string) string { return strings.TrimPrefix(path+"."+key, ".") }

// member checks the value of a member, nil if it is missing. The error is a FieldError.
func (c *shapeChecker) member(r *memberRule, v rawjson.Value, path string) error {
	kind := v.Kind()
	isMissing := kind == 0
	switch {
	case isMissing && r.optional:
		return nil
	case isMissing:
		return &FieldError{Field: path, Want: r.kinds.String(), Got: "none"}
	case kind&r.kinds == 0:
		return &FieldError{Field: path, Want: r.kinds.String(), Got: kind.String()}
	case r.notEmpty && string(v) == `""`:
		return &FieldError{Field: path, Want: "a string that is not empty"}
	case kind == rawjson.Object && r.object != nil:
		return c.object(r.object, v, path)
	case kind == rawjson.Array && r.elements != 0:
		return c.elements(r, v, path)
	}
	return nil
}

// elements checks the elements of an array: first the kinds of all, then each of them.
func (c *shapeChecker) elements(r *memberRule, array rawjson.Value, path string) error {
	at := 0
	for element := range array.EachElement {
		k := element.Kind()
		if k&r.elements == 0 {
			return &FieldError{
				Field: fmt.Sprintf("%s[%d]", path, at),
				Want:  r.elements.String(),
				Got:   k.String(),
			}
		}
		at++
	}
	if r.each == nil {
		return nil
	}
	at = 0
	for element := range array.EachElement {
		err := c.object(r.each, element, fmt.Sprintf("%s[%d]", path, at))
		if err != nil {
			return err
		}
		at++
	}
	return nil
}
