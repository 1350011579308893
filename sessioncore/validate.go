package sessioncore

import "strings"

// This file says what an entry must look like to be written (docs/design.md section 2, append): the types
// that the format knows, and of each the fields that readers rely on. messagerules.go is its part for messages.

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
		{key: "message", kinds: anObject, object: messageRules},
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
		{key: "tokensAfter", kinds: aNumber, optional: true},
		fileDetails,
		{key: "preserveData", kinds: anObject | aNull, optional: true},
		{key: "fromExtension", kinds: aBool | aNull, optional: true},
		{key: "fromHook", kinds: aBool | aNull, optional: true},
	},
	TypeBranchSummary: {
		{key: "fromId", kinds: aString, notEmpty: true},
		{key: "summary", kinds: aString},
		fileDetails,
		{key: "fromExtension", kinds: aBool | aNull, optional: true},
		{key: "fromHook", kinds: aBool | aNull, optional: true},
	},
	TypeCustom: {{key: "customType", kinds: aString}},
	TypeCustomMessage: {
		{key: "customType", kinds: aString},
		contentRule(aString | anArray),
		{key: "display", kinds: aBool},
		{key: "attribution", kinds: aString, optional: true},
	},
	TypeLabel: {
		{key: "targetId", kinds: aString},
		{key: "label", kinds: aString | aNull, optional: true},
	},
	TypeTTSRInjection: {{key: "injectedRules", kinds: anArray, elements: aString}},
	TypeSessionInit: {
		{key: "systemPrompt", kinds: aString | anArray, elements: aString},
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

// checkEntry holds an object against what the format says of its type, and returns that and what is to be
// filled in.
func (d *dialect) checkEntry(line value) (EntryType, editList, error) {
	if err := check(line, "", d.common); err != nil {
		return TypeUnknown, nil, err
	}
	kind := d.typeOf(line.member("type"))
	rules, ok := d.entries[kind]
	if !ok {
		return kind, nil, &FieldError{Field: "type", Want: "one that can be appended", Got: shortened(line.member("type"))}
	}
	if err := d.checkSpelling(line, rules); err != nil {
		return kind, nil, err
	}
	if t := line.member("timestamp"); t != nil {
		if _, _, ok := d.time(t); !ok {
			return kind, nil, &FieldError{Field: "timestamp", Want: "a time as 2026-02-16T10:20:30.000Z", Got: shortened(t)}
		}
	}
	if d == omp && kind == TypeModelChange && line.member("model") == nil && line.member("provider") != nil {
		rules = oldModelRules
	}
	var variant *variants
	if d == omp && kind == TypeCustomMessage {
		variant = customDetails
	}
	fills, err := (&shape{rules, variant}).check(line, "", line, nil)
	return kind, fills, err
}

// shownValue is how much of a value an error repeats, in bytes.
const shownValue = 60

func shortened(v value) string {
	if len(v) <= shownValue {
		return TextUTF8(string(appendUTF8(nil, v)))
	}
	return TextUTF8(string(appendUTF8(nil, v[:shownValue]))) + "…"
}
