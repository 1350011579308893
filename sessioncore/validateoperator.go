package sessioncore

// What an entry of the operator dialect must look like to be written (format.md, operator dialect).

// operatorCommonRules are those of every entry; see commonRules.
var operatorCommonRules = []fieldRule{
	{key: "type", kinds: aString},
	{key: "id", kinds: aString, optional: true, notEmpty: true},
	{key: "parent_id", kinds: aString | aNull, optional: true},
	{key: "timestamp", kinds: aString | aNumber, optional: true},
}

// operatorEntryRules are the fields of each type. The seed's own compaction has no tokens_before.
var operatorEntryRules = map[EntryType][]fieldRule{
	TypeMessage: {
		{key: "message", kinds: anObject, members: []fieldRule{{key: "role", kinds: aString, notEmpty: true}}},
	},
	TypeCompaction: {
		{key: "summary", kinds: aString},
		{key: "first_kept_entry_id", kinds: aString},
		{key: "tokens_before", kinds: aNumber | aNull, optional: true},
	},
	TypeBranchSummary: {
		{key: "from_id", kinds: aString | aNull, notEmpty: true},
		{key: "summary", kinds: aString},
	},
	TypeLeaf: {{key: "target_id", kinds: aString | aNull}},
	TypeLabel: {
		{key: "target_id", kinds: aString},
		{key: "label", kinds: aString | aNull, optional: true},
	},
	TypeThinkingLevelChange: {{key: "thinking_level", kinds: aString | aNull}},
	TypeModelChange: {
		{key: "provider", kinds: aString},
		{key: "model_id", kinds: aString, notEmpty: true},
	},
	TypeSessionInfo: {{key: "name", kinds: aString | aNull}},
	TypeCustom:      {{key: "custom_type", kinds: aString}},
	TypeCustomMessage: {
		{key: "custom_type", kinds: aString},
		{key: "content", kinds: aString | anArray, elements: anObject},
		{key: "display", kinds: aBool},
	},
}

// checkSpelling refuses the keys that the other dialect has for what this one spells otherwise: left in, they
// would mean nothing, and what they say would be filled in or found missing.
func (d *dialect) checkSpelling(line value, rules []fieldRule) error {
	if d.spelling != snakeCase {
		return nil
	}
	for _, list := range [][]fieldRule{d.common, rules} {
		for i := range list {
			key := list[i].key
			if camel := inCamelCase(key); camel != key && line.member(camel) != nil {
				return &FieldError{Field: camel, Want: "the key " + key + ", as keys of this session are in snake_case"}
			}
		}
	}
	return nil
}
