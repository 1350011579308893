package writer

import (
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

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
	b.WriteString(sessioncore.ErrInvalid.Error() + ": ")
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
func (e *FieldError) Unwrap() error { return sessioncore.ErrInvalid }

// commonRules are those of every entry. What is absent is filled in. An empty id would be lost as a
// parent, since readers take an empty parentId for none (docs/format.md, Loading).
var commonRules = []fieldRule{
	{key: "type", kinds: rawjson.String},
	{key: "id", kinds: rawjson.String, optional: true, notEmpty: true},
	{key: "parentId", kinds: rawjson.String | rawjson.Null, optional: true},
	{key: "timestamp", kinds: rawjson.String, optional: true},
}

// entryRules are the fields of each type that can be written: the first thirteen of the table
// (docs/format.md, Entry types). Where there are an older and a newer shape, both are good.
var entryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage: {
		{key: "message", kinds: rawjson.Object, object: messageRules},
	},
	sessioncore.TypeThinkingLevelChange: {{key: "thinkingLevel", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeModelChange: {
		{key: "model", kinds: rawjson.String, notEmpty: true},
		{key: "role", kinds: rawjson.String | rawjson.Null, optional: true},
	},
	sessioncore.TypeCompaction: {
		{key: "summary", kinds: rawjson.String},
		{key: "shortSummary", kinds: rawjson.String | rawjson.Null, optional: true},
		{key: "firstKeptEntryId", kinds: rawjson.String},
		{key: "tokensBefore", kinds: rawjson.Number},
		{key: "tokensAfter", kinds: rawjson.Number, optional: true},
		fileDetails,
		{key: "preserveData", kinds: rawjson.Object | rawjson.Null, optional: true},
		{key: "fromExtension", kinds: rawjson.Bool | rawjson.Null, optional: true},
		{key: "fromHook", kinds: rawjson.Bool | rawjson.Null, optional: true},
	},
	sessioncore.TypeBranchSummary: {
		{key: "fromId", kinds: rawjson.String, notEmpty: true},
		{key: "summary", kinds: rawjson.String},
		fileDetails,
		{key: "fromExtension", kinds: rawjson.Bool | rawjson.Null, optional: true},
		{key: "fromHook", kinds: rawjson.Bool | rawjson.Null, optional: true},
	},
	sessioncore.TypeCustom: {{key: "customType", kinds: rawjson.String}},
	sessioncore.TypeCustomMessage: {
		{key: "customType", kinds: rawjson.String},
		contentRule(rawjson.String | rawjson.Array),
		{key: "display", kinds: rawjson.Bool},
		{key: "attribution", kinds: rawjson.String, optional: true},
	},
	sessioncore.TypeLabel: {
		{key: "targetId", kinds: rawjson.String},
		{key: "label", kinds: rawjson.String | rawjson.Null, optional: true},
	},
	sessioncore.TypeTTSRInjection: {{key: "injectedRules", kinds: rawjson.Array, elements: rawjson.String}},
	sessioncore.TypeSessionInit: {
		{key: "systemPrompt", kinds: rawjson.String | rawjson.Array, elements: rawjson.String},
		{key: "task", kinds: rawjson.String},
		{key: "tools", kinds: rawjson.Array, elements: rawjson.String},
	},
	sessioncore.TypeModeChange: {
		{key: "mode", kinds: rawjson.String},
		{key: "data", kinds: rawjson.Object | rawjson.Null, optional: true},
	},
	sessioncore.TypeServiceTierChange: {{key: "serviceTier", kinds: rawjson.String | rawjson.Object | rawjson.Null}},
	sessioncore.TypeMCPToolSelection:  {{key: "selectedToolNames", kinds: rawjson.Array, elements: rawjson.String}},
}

// oldModelRules are those of a model change that names no model but, as older clients did, a provider
// and a modelId (docs/format.md, Entry types).
var oldModelRules = []fieldRule{
	{key: "provider", kinds: rawjson.String, notEmpty: true},
	{key: "modelId", kinds: rawjson.String, notEmpty: true},
}

// rulesOf returns the fields of all entries of a dialect, and the fields of each type that can be written.
func rulesOf(d *sessioncore.Dialect) (common []fieldRule, entries map[sessioncore.EntryType][]fieldRule) {
	if d == sessioncore.Operator {
		return operatorCommonRules, operatorEntryRules
	}
	return commonRules, entryRules
}

// checkEntry holds an object against what the format says of its type, and returns that and what is to be
// filled in.
func checkEntry(d *sessioncore.Dialect, line rawjson.Value) (sessioncore.EntryType, rawjson.Edits, error) {
	common, entries := rulesOf(d)
	if err := check(line, "", common); err != nil {
		return sessioncore.TypeUnknown, nil, err
	}
	kind := d.TypeOf(line.Member("type"))
	rules, ok := entries[kind]
	if !ok {
		return kind, nil, &FieldError{Field: "type", Want: "one that can be appended", Got: shortened(line.Member("type"))}
	}
	if err := checkSpelling(d, line, common, rules); err != nil {
		return kind, nil, err
	}
	if t := line.Member("timestamp"); t != nil {
		if _, _, ok := d.Time(t); !ok {
			return kind, nil, &FieldError{Field: "timestamp", Want: "a time as 2026-02-16T10:20:30.000Z", Got: shortened(t)}
		}
	}
	if d == sessioncore.OMP && kind == sessioncore.TypeModelChange && line.Member("model") == nil && line.Member("provider") != nil {
		rules = oldModelRules
	}
	var variant *variants
	if d == sessioncore.OMP && kind == sessioncore.TypeCustomMessage {
		variant = customDetails
	}
	fills, err := (&shape{rules, variant}).check(line, "", line, nil)
	return kind, fills, err
}

// shownValue is how much of a value an error repeats, in bytes.
const shownValue = 60

func shortened(v rawjson.Value) string {
	if len(v) <= shownValue {
		return sessioncore.TextUTF8(string(rawjson.AppendUTF8(nil, v)))
	}
	return sessioncore.TextUTF8(string(rawjson.AppendUTF8(nil, v[:shownValue]))) + "…"
}
