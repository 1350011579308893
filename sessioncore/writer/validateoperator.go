package writer

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

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
