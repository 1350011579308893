package writer

import (
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
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
	needText("type"),
	{key: "id", kinds: rawjson.String, optional: true, notEmpty: true},
	mayText("parentId"),
	{key: "timestamp", kinds: rawjson.String, optional: true},
}

// entryRules are the rules for each type that can be appended: the first fifteen of the table (docs/format.md, Entry
// types). If a type has an older and a newer form, both are valid.
var entryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage: {needObject("message", messageRules)},
	sessioncore.TypeThinkingLevelChange: {
		{key: "thinkingLevel", kinds: rawjson.String | rawjson.Null},
		mayText("configured"),
	},
	sessioncore.TypeModelChange: {needName("model"), mayText("role"), mayBool("resolvedModelIsFallback")},
	sessioncore.TypeCompaction: {
		needText("summary"), mayText("shortSummary"), needText("firstKeptEntryId"), needNumber("tokensBefore"),
		{key: "tokensAfter", kinds: rawjson.Number, optional: true},
		mayText("method"), mayText("providerReplayThroughEntryId"), mayText("warning"), fileDetails,
		mayObject("preserveData", nil), mayBool("fromExtension"), mayBool("fromHook"),
	},
	sessioncore.TypeBranchSummary: {
		needName("fromId"), needText("summary"), fileDetails, mayBool("fromExtension"), mayBool("fromHook"),
	},
	sessioncore.TypeCustom: {needText("customType")},
	sessioncore.TypeCustomMessage: {
		needText("customType"), contentRule, needBool("display"),
		{key: "attribution", kinds: rawjson.String, optional: true},
	},
	sessioncore.TypeLabel:         {needText("targetId"), mayText("label")},
	sessioncore.TypeTTSRInjection: {needTexts("injectedRules")},
	sessioncore.TypeSessionInit: {
		{key: "systemPrompt", kinds: rawjson.String | rawjson.Array, elements: rawjson.String},
		needText("task"), needTexts("tools"), mayObject("compactionThreshold", nil),
	},
	sessioncore.TypeResetBoundary:     {},
	sessioncore.TypeArchive:           {needText("targetId"), needBool("archived")},
	sessioncore.TypeModeChange:        {needText("mode"), mayObject("data", nil)},
	sessioncore.TypeServiceTierChange: {{key: "serviceTier", kinds: rawjson.String | rawjson.Object | rawjson.Null}},
	sessioncore.TypeMCPToolSelection:  {needTexts("selectedToolNames")},
}

// oldModelRules are the rules for a model change that has, as in older clients, a provider and a modelId instead of a
// model (docs/format.md, Entry types).
var oldModelRules = []fieldRule{needName("provider"), needName("modelId")}

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

// This file has the rules for entries of the operator dialect (docs/format.md, Operator dialect).

// operatorCommonRules are the rules for every entry, as commonRules are in omp's dialect.
var operatorCommonRules = []fieldRule{
	needText("type"),
	{key: "id", kinds: rawjson.String, optional: true, notEmpty: true},
	mayText("parent_id"),
	{key: "timestamp", kinds: rawjson.String | rawjson.Number, optional: true},
}

// operatorEntryRules are the rules for each type. tokens_before is optional in a compaction.
var operatorEntryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage:    {needObject("message", of(needName("role")))},
	sessioncore.TypeCompaction: {needText("summary"), needText("first_kept_entry_id"), mayNumber("tokens_before")},
	sessioncore.TypeBranchSummary: {
		{key: "from_id", kinds: rawjson.String | rawjson.Null, notEmpty: true},
		needText("summary"),
	},
	sessioncore.TypeLeaf:                {{key: "target_id", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeLabel:               {needText("target_id"), mayText("label")},
	sessioncore.TypeThinkingLevelChange: {{key: "thinking_level", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeModelChange:         {needText("provider"), needName("model_id")},
	sessioncore.TypeSessionInfo:         {{key: "name", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeCustom:              {needText("custom_type")},
	sessioncore.TypeCustomMessage:       {needText("custom_type"), blocksOrText, needBool("display")},
}

// checkSpelling refuses keys in the other dialect's spelling: they would have no effect, while the right key would be
// filled in or reported missing.
func checkSpelling(d *sessioncore.Dialect, line rawjson.Value, common, rules []fieldRule) error {
	if d.Spelling != jsonl.SnakeCase {
		return nil
	}
	for _, list := range [][]fieldRule{common, rules} {
		for i := range list {
			key := list[i].key
			if camel := rawjson.CamelCase(key); camel != key && line.Member(camel) != nil {
				return &FieldError{Field: camel, Want: "the key " + key + ", as keys of this session are in snake_case"}
			}
		}
	}
	return nil
}
