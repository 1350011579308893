package writer

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file has the rules for entries of the operator dialect (docs/format.md, Operator dialect).

// operatorCommonRules are the rules for every entry, as commonRules are in omp's dialect.
var operatorCommonRules = []fieldRule{
	{key: "type", kinds: rawjson.String},
	{key: "id", kinds: rawjson.String, optional: true, notEmpty: true},
	{key: "parent_id", kinds: rawjson.String | rawjson.Null, optional: true},
	{key: "timestamp", kinds: rawjson.String | rawjson.Number, optional: true},
}

// operatorEntryRules are the rules for each type. tokens_before is optional in a compaction.
var operatorEntryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage: {
		{key: "message", kinds: rawjson.Object, members: []fieldRule{{key: "role", kinds: rawjson.String, notEmpty: true}}},
	},
	sessioncore.TypeCompaction: {
		{key: "summary", kinds: rawjson.String},
		{key: "first_kept_entry_id", kinds: rawjson.String},
		{key: "tokens_before", kinds: rawjson.Number | rawjson.Null, optional: true},
	},
	sessioncore.TypeBranchSummary: {
		{key: "from_id", kinds: rawjson.String | rawjson.Null, notEmpty: true},
		{key: "summary", kinds: rawjson.String},
	},
	sessioncore.TypeLeaf: {{key: "target_id", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeLabel: {
		{key: "target_id", kinds: rawjson.String},
		{key: "label", kinds: rawjson.String | rawjson.Null, optional: true},
	},
	sessioncore.TypeThinkingLevelChange: {{key: "thinking_level", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeModelChange: {
		{key: "provider", kinds: rawjson.String},
		{key: "model_id", kinds: rawjson.String, notEmpty: true},
	},
	sessioncore.TypeSessionInfo: {{key: "name", kinds: rawjson.String | rawjson.Null}},
	sessioncore.TypeCustom:      {{key: "custom_type", kinds: rawjson.String}},
	sessioncore.TypeCustomMessage: {
		{key: "custom_type", kinds: rawjson.String},
		{key: "content", kinds: rawjson.String | rawjson.Array, elements: rawjson.Object},
		{key: "display", kinds: rawjson.Bool},
	},
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
