package writer

import (
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// This file checks entries against the rules of their dialect (rules.go).

// FieldError describes the field of a line that is invalid. It wraps ErrInvalid.
type FieldError struct {
	Field string // a path of keys, such as "message.role"; "" for the line itself
	Want  string // the expectation, such as "a string"
	Got   string // the finding, such as "a number"; "" to omit it
}

// Error implements error.
func (e *FieldError) Error() string {
	text := sessioncore.ErrInvalid.Error() + ": "
	if e.Field != "" {
		text += e.Field + ": "
	}
	text += "expected " + e.Want
	if e.Got != "" {
		text += ", found " + e.Got
	}
	return text
}

// Unwrap returns ErrInvalid.
func (e *FieldError) Unwrap() error { return sessioncore.ErrInvalid }

// rulePrefixes are the prefixes of the names of rules for each dialect.
var rulePrefixes = map[*sessioncore.Dialect]string{
	sessioncore.OMP: "omp", sessioncore.Pi: "pi", sessioncore.Operator: "operator",
}

// checkEntry checks an entry by its type. It returns the type and edits that add missing members. The
// error is a FieldError.
func checkEntry(d *sessioncore.Dialect, line rawjson.Value) (sessioncore.EntryType, rawjson.Edits, error) {
	common := shapes()[rulePrefixes[d]]
	err := common.check(line)
	if err != nil {
		return sessioncore.TypeUnknown, nil, err
	}
	typ := line.Member("type")
	kind := d.TypeOf(typ)
	name, _ := typ.Text()
	rules := shapes()[rulePrefixes[d]+"/"+name]
	if rules == nil {
		return kind, nil, unknownType(d, kind, typ)
	}
	err = checkSpelling(d, line, common, rules)
	if err != nil {
		return kind, nil, err
	}
	timestamp := line.Member("timestamp")
	if timestamp != nil {
		_, _, isTime := d.Time(timestamp)
		if !isTime {
			const want = "a time as 2026-02-16T10:20:30.000Z"
			return kind, nil, &FieldError{Field: "timestamp", Want: want, Got: shortened(timestamp)}
		}
	}
	isModelChange := d == sessioncore.OMP && kind == sessioncore.TypeModelChange
	isOldForm := line.Member("model") == nil && line.Member("provider") != nil
	if isModelChange && isOldForm {
		rules = shapes()["oldModel"]
	}
	c := &shapeChecker{text: line}
	err = c.object(rules, line, "")
	if err == nil {
		c.markZero(line.Member("usage"))
		c.markZero(line.Member("message").Member("usage"))
	}
	return kind, c.fills, err
}

// markZero marks a cost of 0 beside tokens as unrecorded: its author does not know the number. A usage
// that is nil or has another cost stays as it is.
func (c *shapeChecker) markZero(usage rawjson.Value) {
	cost := usage.Member("cost")
	if !cost.IsObject() || !hasTokens(usage) {
		return
	}
	for m := range cost.EachMember {
		isZero := strings.Trim(string(m.Value), "-0.") == "" // in any spelling, such as 0.00
		if !isZero || m.KeyIs("unrecorded") {
			return
		}
	}
	c.add(cost, `"unrecorded":true`)
}

// hasTokens reports whether a usage has a number that is not 0.
func hasTokens(usage rawjson.Value) bool {
	for m := range usage.EachMember {
		if m.Value.IsNumber() && string(m.Value) != "0" {
			return true
		}
	}
	return false
}

// unknownType returns the error for an entry of a type that cannot be appended in dialect d.
func unknownType(d *sessioncore.Dialect, kind sessioncore.EntryType, typ rawjson.Value) error {
	want := "one that can be appended"
	switch kind {
	case sessioncore.TypeUnknown: // no agent reads it
	case sessioncore.TypeSessionInfo, sessioncore.TypeUsage, sessioncore.TypeContextEdit:
		if d == sessioncore.OMP {
			want = "one that omp reads, as this session is not known to be one of pi"
		}
	default:
		if d == sessioncore.Pi {
			want = "one that pi reads"
		}
	}
	return &FieldError{Field: "type", Want: want, Got: shortened(typ)}
}

// checkSpelling refuses keys in the other dialect's spelling, which would have no effect while the
// right key would be missing.
func checkSpelling(d *sessioncore.Dialect, line rawjson.Value, shapes ...*shape) error {
	if d.Spelling != jsonl.SnakeCase {
		return nil
	}
	for _, s := range shapes {
		for _, rule := range s.members {
			key := rule.key
			camel := rawjson.CamelCase(key)
			if camel != key && line.Member(camel) != nil {
				return &FieldError{Field: camel, Want: "the key " + key + ", as keys of this session are in snake_case"}
			}
		}
	}
	return nil
}

// shownValue bounds the bytes of a value in an error.
const shownValue = 60

// shortened returns the beginning of a value for an error, as UTF-8.
func shortened(v rawjson.Value) string {
	if len(v) <= shownValue {
		return names.TextUTF8(string(rawjson.AppendUTF8(nil, v)))
	}
	return names.TextUTF8(string(rawjson.AppendUTF8(nil, v[:shownValue]))) + "…"
}

// batchLine is a line of a batch for the checks of later lines.
type batchLine struct {
	parent   *string
	editable bool
}

// checkEdit returns an error unless a context_edit has a target that pi permits: a message that is
// sent, on the branch that ends in parent.
func (b *batch) checkEdit(d *draft, parent *string) error {
	target, _ := d.text.Member(b.dialect.TargetKey).Text()
	err := b.checkID(target)
	if err != nil {
		return err
	}
	// The branch ends in lines of the batch, and begins with entries of the session.
	for parent != nil {
		line, isInBatch := b.ids[*parent]
		if !isInBatch {
			break
		}
		if *parent == target && line.editable {
			return nil
		}
		parent = line.parent
	}
	if parent != nil {
		end, err := b.snap.Find(*parent)
		if err != nil {
			return err
		}
		for _, e := range b.snap.Path(end) {
			id, _ := b.snap.ID(e)
			if id == target && isEditable(b.snap.Kind(e), b.snap.Role(e)) {
				return nil
			}
		}
	}
	const want = "a custom_message or a message of a user, an assistant or a tool, on the branch of the new entry"
	return &FieldError{Field: "targetId", Want: want}
}

// isEditable reports whether a context_edit can target an entry.
func isEditable(kind sessioncore.EntryType, role sessioncore.Role) bool {
	switch role {
	case sessioncore.RoleUser, sessioncore.RoleAssistant, sessioncore.RoleToolResult:
		return kind == sessioncore.TypeMessage
	}
	return kind == sessioncore.TypeCustomMessage
}

// isEditable reports whether a context_edit can target the entry of a line.
func (d *draft) isEditable() bool {
	switch d.kind {
	case sessioncore.TypeCustomMessage:
		return true
	case sessioncore.TypeMessage:
		role, _ := d.text.Member("message").Member("role").Text()
		return role == "user" || role == "assistant" || role == "toolResult"
	}
	return false
}
