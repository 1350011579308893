package sessioncore

import (
	"fmt"
	"strings"
)

// This file says what an entry must look like to be written (design.md section 2, append): the types
// that the format knows, and of each the fields that readers rely on.

// FieldError says which field of a line is at fault. It wraps ErrInvalid.
type FieldError struct {
	Field string // a path of keys, as "message.role"; "" for the line itself
	Want  string // what was expected, as "a string"
	Got   string // what was found, as "a number"; "" where that says nothing more
}

// Error implements error.
func (e *FieldError) Error() string {
	var b strings.Builder
	b.WriteString(ErrInvalid.Error() + ": ")
	if e.Field != "" {
		b.WriteString(e.Field + ": ")
	}
	b.WriteString("expected " + e.Want)
	if e.Got != "" {
		b.WriteString(", found " + e.Got)
	}
	return b.String()
}

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// kinds is a set of the kinds of JSON values.
type kinds uint8

const (
	aString kinds = 1 << iota
	aNumber
	aBool
	anObject
	anArray
	aNull
)

var kindNames = [...]string{"a string", "a number", "true or false", "an object", "an array", "null"}

func (k kinds) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// kindOf returns the kind of a value, 0 for an absent one.
func (v value) kind() kinds {
	switch {
	case len(v) == 0:
		return 0
	case v.isString():
		return aString
	case v.isObject():
		return anObject
	case v.isArray():
		return anArray
	case v[0] == 'n':
		return aNull
	case v[0] == 't' || v[0] == 'f':
		return aBool
	}
	return aNumber
}

// fieldRule says what a member of an object must be. Members without a rule may be anything.
type fieldRule struct {
	key      string
	kinds    kinds
	optional bool
	notEmpty bool        // of a string
	elements kinds       // of an array; 0: anything
	members  []fieldRule // of an object
}

// commonRules are those of every entry. What is absent is filled in. An empty id would be lost as a
// parent, since readers take an empty parentId for none (format.md, loading).
var commonRules = []fieldRule{
	{key: "type", kinds: aString},
	{key: "id", kinds: aString, optional: true, notEmpty: true},
	{key: "parentId", kinds: aString | aNull, optional: true},
	{key: "timestamp", kinds: aString, optional: true},
}

// entryRules are the fields of each type that can be written: the seeds' eleven and two more
// (format.md, entry types). Where the seeds differ from each other, both shapes are good.
var entryRules = map[EntryType][]fieldRule{
	TypeMessage: {
		{key: "message", kinds: anObject, members: []fieldRule{{key: "role", kinds: aString, notEmpty: true}}},
	},
	TypeThinkingLevelChange: {{key: "thinkingLevel", kinds: aString | aNull}},
	TypeModelChange: {
		{key: "model", kinds: aString, notEmpty: true},
		{key: "role", kinds: aString | aNull, optional: true},
	},
	TypeCompaction: {
		{key: "summary", kinds: aString},
		{key: "shortSummary", kinds: aString | aNull, optional: true},
		{key: "firstKeptEntryId", kinds: aString},
		{key: "tokensBefore", kinds: aNumber},
		{key: "preserveData", kinds: anObject | aNull, optional: true},
		{key: "fromExtension", kinds: aBool | aNull, optional: true},
		{key: "fromHook", kinds: aBool | aNull, optional: true},
	},
	TypeBranchSummary: {
		{key: "fromId", kinds: aString, notEmpty: true},
		{key: "summary", kinds: aString},
		{key: "fromExtension", kinds: aBool | aNull, optional: true},
		{key: "fromHook", kinds: aBool | aNull, optional: true},
	},
	TypeCustom: {{key: "customType", kinds: aString}},
	TypeCustomMessage: {
		{key: "customType", kinds: aString},
		{key: "content", kinds: aString | anArray, elements: anObject},
		{key: "display", kinds: aBool},
		{key: "attribution", kinds: aString, optional: true},
	},
	TypeLabel: {
		{key: "targetId", kinds: aString},
		{key: "label", kinds: aString | aNull, optional: true},
	},
	TypeTTSRInjection: {{key: "injectedRules", kinds: anArray, elements: aString}},
	TypeSessionInit: {
		{key: "systemPrompt", kinds: aString},
		{key: "task", kinds: aString},
		{key: "tools", kinds: anArray, elements: aString},
	},
	TypeModeChange: {
		{key: "mode", kinds: aString},
		{key: "data", kinds: anObject | aNull, optional: true},
	},
	TypeServiceTierChange: {{key: "serviceTier", kinds: aString | anObject | aNull}},
	TypeMCPToolSelection:  {{key: "selectedToolNames", kinds: anArray, elements: aString}},
}

// oldModelRules are those of a model change that names no model but, as older clients did, a provider
// and a modelId (seed session-file-format-v2).
var oldModelRules = []fieldRule{
	{key: "provider", kinds: aString, notEmpty: true},
	{key: "modelId", kinds: aString, notEmpty: true},
}

// noUsage is what an assistant's message gets that has no usage: the client adds these numbers up when it
// opens a session, and cannot open one where they are missing.
const noUsage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`

// usageRules are the numbers of a usage that the client adds up.
var usageRules = []fieldRule{
	{key: "input", kinds: aNumber},
	{key: "output", kinds: aNumber},
	{key: "cacheRead", kinds: aNumber},
	{key: "cacheWrite", kinds: aNumber},
	{key: "cost", kinds: anObject, members: []fieldRule{{key: "total", kinds: aNumber}}},
}

// messageRules are the fields of messages by role. Other roles are not looked into.
var messageRules = map[string][]fieldRule{
	"user":      {{key: "content", kinds: aString | anArray, elements: anObject}},
	"developer": {{key: "content", kinds: aString | anArray, elements: anObject}},
	"assistant": {
		{key: "content", kinds: aString | anArray, elements: anObject},
		{key: "usage", kinds: anObject, optional: true, members: usageRules}, // filled in where absent
	},
	"toolResult": {
		{key: "toolCallId", kinds: aString},
		{key: "toolName", kinds: aString},
		{key: "content", kinds: aString | anArray, elements: anObject},
	},
}

// check holds an object against rules. path is the object's own, "" for the line.
func check(object value, path string, rules []fieldRule) error {
	found := pick(object, rules)
	for i := range rules {
		if err := rules[i].check(path, found[i]); err != nil {
			return err
		}
	}
	return nil
}

// pick returns the members that rules name, in one pass over the object; the last of repeated ones.
func pick(object value, rules []fieldRule) []value {
	found := make([]value, len(rules))
	object.eachMember(func(m member) bool {
		for i := range rules {
			if m.keyIs(rules[i].key) {
				found[i] = m.value
			}
		}
		return true
	})
	return found
}

func (r *fieldRule) check(path string, v value) error {
	if path != "" {
		path += "."
	}
	path += r.key
	kind := v.kind()
	switch {
	case kind == 0 && r.optional:
		return nil
	case kind == 0:
		return &FieldError{Field: path, Want: r.kinds.String(), Got: "none"}
	case kind&r.kinds == 0:
		return &FieldError{Field: path, Want: r.kinds.String(), Got: kind.String()}
	case r.notEmpty && string(v) == `""`:
		return &FieldError{Field: path, Want: "a string that is not empty"}
	}
	if kind == anObject && r.members != nil {
		return check(v, path, r.members)
	}
	var err error
	if kind == anArray && r.elements != 0 {
		at := 0
		v.eachElement(func(element value, _ int) bool {
			if k := element.kind(); k&r.elements == 0 {
				err = &FieldError{Field: fmt.Sprintf("%s[%d]", path, at), Want: r.elements.String(), Got: k.String()}
			}
			at++
			return err == nil
		})
	}
	return err
}

// checkEntry holds an object against what the format says of its type, and returns that.
func (d *dialect) checkEntry(line value) (EntryType, error) {
	if err := check(line, "", d.common); err != nil {
		return TypeUnknown, err
	}
	kind := d.typeOf(line.member("type"))
	rules, ok := d.entries[kind]
	if !ok {
		return kind, &FieldError{Field: "type", Want: "one that can be appended", Got: shortened(line.member("type"))}
	}
	if err := d.checkSpelling(line, rules); err != nil {
		return kind, err
	}
	if t := line.member("timestamp"); t != nil {
		if _, _, ok := d.time(t); !ok {
			return kind, &FieldError{Field: "timestamp", Want: "a time as 2026-02-16T10:20:30.000Z", Got: shortened(t)}
		}
	}
	if d == omp && kind == TypeModelChange && line.member("model") == nil && line.member("provider") != nil {
		rules = oldModelRules
	}
	if err := check(line, "", rules); err != nil {
		return kind, err
	}
	if kind == TypeMessage && d.messages != nil {
		return kind, d.checkMessage(line.member("message"))
	}
	return kind, nil
}

func (d *dialect) checkMessage(message value) error {
	const path = "message"
	role, _ := message.member("role").text()
	if err := check(message, path, d.messages[role]); err != nil {
		return err
	}
	// The client counts what a subagent used as well.
	if usage := message.member("details").member("usage"); role == "toolResult" && message.member("toolName").is("task") &&
		(usage.isObject() || usage.isArray()) {
		return check(usage, path+".details.usage", usageRules)
	}
	return nil
}

// shownValue is how much of a value an error repeats, in bytes.
const shownValue = 60

func shortened(v value) string {
	if len(v) <= shownValue {
		return TextUTF8(string(appendUTF8(nil, v)))
	}
	return TextUTF8(string(appendUTF8(nil, v[:shownValue]))) + "…"
}
