package writer

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// What an entry of the operator dialect must look like to be written (docs/format.md, Operator dialect).

// operatorCommonRules are those of every entry; see commonRules.
var operatorCommonRules = []fieldRule{
	{key: "type", kinds: rawjson.String},
	{key: "id", kinds: rawjson.String, optional: true, notEmpty: true},
	{key: "parent_id", kinds: rawjson.String | rawjson.Null, optional: true},
	{key: "timestamp", kinds: rawjson.String | rawjson.Number, optional: true},
}

// operatorEntryRules are the fields of each type. A compaction need have no tokens_before.
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

// checkSpelling refuses the keys that the other dialect has for what this one spells otherwise: left in, they
// would mean nothing, and what they say would be filled in or found missing.
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
