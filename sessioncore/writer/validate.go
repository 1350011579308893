package writer

import (
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// This file says what an entry must look like to be appended (docs/design.md section 2, append): the types that the
// format knows, and for each type the fields that readers rely on. messagerules.go has the rules for messages.

// FieldError describes the field of a line that is invalid. It wraps ErrInvalid.
type FieldError struct {
	Field string // a path of keys, such as "message.role"; "" for the line itself
	Want  string // what was expected, such as "a string"
	Got   string // what was found, such as "a number"; "" to say nothing
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

// Unwrap returns ErrInvalid.
func (e *FieldError) Unwrap() error { return sessioncore.ErrInvalid }

// commonRules are the rules for every entry; missing members are filled in. An entry with an empty id could not be a
// parent, since readers take an empty parentId for none (docs/format.md, Loading).
var commonRules = []fieldRule{
	{key: "type", kinds: rawjson.String},
	{key: "id", kinds: rawjson.String, optional: true, notEmpty: true},
	{key: "parentId", kinds: rawjson.String | rawjson.Null, optional: true},
	{key: "timestamp", kinds: rawjson.String, optional: true},
}

// entryRules are the rules for each type that can be appended: the first fifteen of the table (docs/format.md, Entry
// types). If a type has an older and a newer form, both are valid.
var entryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage: {
		{key: "message", kinds: rawjson.Object, object: messageRules},
	},
	sessioncore.TypeThinkingLevelChange: {
		{key: "thinkingLevel", kinds: rawjson.String | rawjson.Null},
		{key: "configured", kinds: rawjson.String | rawjson.Null, optional: true},
	},
	sessioncore.TypeModelChange: {
		{key: "model", kinds: rawjson.String, notEmpty: true},
		{key: "role", kinds: rawjson.String | rawjson.Null, optional: true},
		{key: "resolvedModelIsFallback", kinds: rawjson.Bool | rawjson.Null, optional: true},
	},
	sessioncore.TypeCompaction: {
		{key: "summary", kinds: rawjson.String},
		{key: "shortSummary", kinds: rawjson.String | rawjson.Null, optional: true},
		{key: "firstKeptEntryId", kinds: rawjson.String},
		{key: "tokensBefore", kinds: rawjson.Number},
		{key: "tokensAfter", kinds: rawjson.Number, optional: true},
		{key: "method", kinds: rawjson.String | rawjson.Null, optional: true},
		{key: "providerReplayThroughEntryId", kinds: rawjson.String | rawjson.Null, optional: true},
		{key: "warning", kinds: rawjson.String | rawjson.Null, optional: true},
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
		{key: "compactionThreshold", kinds: rawjson.Object | rawjson.Null, optional: true},
	},
	sessioncore.TypeResetBoundary: {},
	sessioncore.TypeArchive: {
		{key: "targetId", kinds: rawjson.String},
		{key: "archived", kinds: rawjson.Bool},
	},
	sessioncore.TypeModeChange: {
		{key: "mode", kinds: rawjson.String},
		{key: "data", kinds: rawjson.Object | rawjson.Null, optional: true},
	},
	sessioncore.TypeServiceTierChange: {{key: "serviceTier", kinds: rawjson.String | rawjson.Object | rawjson.Null}},
	sessioncore.TypeMCPToolSelection:  {{key: "selectedToolNames", kinds: rawjson.Array, elements: rawjson.String}},
}

// oldModelRules are the rules for a model change that has, as in older clients, a provider and a modelId instead of a
// model (docs/format.md, Entry types).
var oldModelRules = []fieldRule{
	{key: "provider", kinds: rawjson.String, notEmpty: true},
	{key: "modelId", kinds: rawjson.String, notEmpty: true},
}

// rulesOf returns the rules for all entries of a dialect, and for each type that can be appended.
func rulesOf(d *sessioncore.Dialect) (common []fieldRule, entries map[sessioncore.EntryType][]fieldRule) {
	switch d {
	case sessioncore.Operator:
		return operatorCommonRules, operatorEntryRules
	case sessioncore.Pi:
		return commonRules, piEntryRules
	}
	return commonRules, entryRules
}

// checkEntry checks an entry against the rules for its type. It returns the type and the members to be filled in, as
// edits of line.
func checkEntry(d *sessioncore.Dialect, line rawjson.Value) (sessioncore.EntryType, rawjson.Edits, error) {
	common, entries := rulesOf(d)
	if err := check(line, "", common); err != nil {
		return sessioncore.TypeUnknown, nil, err
	}
	kind := d.TypeOf(line.Member("type"))
	rules, ok := entries[kind]
	if !ok {
		return kind, nil, unknownType(d, kind, line.Member("type"))
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

// shownValue is how many bytes of a value an error repeats.
const shownValue = 60

func shortened(v rawjson.Value) string {
	if len(v) <= shownValue {
		return names.TextUTF8(string(rawjson.AppendUTF8(nil, v)))
	}
	return names.TextUTF8(string(rawjson.AppendUTF8(nil, v[:shownValue]))) + "…"
}
