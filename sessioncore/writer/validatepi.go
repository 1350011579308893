package writer

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file has the rules for entries of pi sessions (docs/format.md, pi): what the code of 0.73.1, 0.87.1 and 1.5.2
// that opens, sends, counts and lists sessions needs. Types and roles that only omp has are refused: pi would pass over
// them in silence.

// piUsage is a rule for what something cost, where pi counts it.
var piUsage = fieldRule{key: "usage", kinds: rawjson.Object | rawjson.Null, optional: true, members: usageRules}

// piTools is a rule for a list of tools.
func piTools(key string) fieldRule {
	return fieldRule{key: key, kinds: rawjson.Array | rawjson.Null, optional: true, elements: rawjson.Object, each: &shape{fields: []fieldRule{needText("name")}}}
}

// piSystem is a system message: it sets or changes parts of the prompt, and the tools.
var piSystem = &shape{fields: []fieldRule{
	{key: "content", kinds: rawjson.String | rawjson.Array, elements: rawjson.Object, each: writtenBlocks},
	mayObject("sections"), piTools("toolsAdded"), piTools("toolsRemoved"), mayNumber("timestamp"),
}}

// piAnswerBlocks are the blocks of an assistant.
var piAnswerBlocks = &shape{
	fields: []fieldRule{needText("type")},
	by: &variants{key: "type", others: true, of: map[string]*shape{
		"text":     textBlock,
		"thinking": {fields: []fieldRule{needText("thinking"), mayText("thinkingSignature")}},
		"toolCall": {fields: []fieldRule{needText("id"), needText("name"), {key: "arguments", kinds: rawjson.Object, fill: `"arguments":{}`}}},
	}},
}

// piMessageRules are the rules for a message, by its role.
var piMessageRules = &shape{fields: []fieldRule{{key: "role", kinds: rawjson.String, notEmpty: true}}, by: &variants{key: "role", of: map[string]*shape{
	"system": piSystem,
	"user":   {fields: []fieldRule{contentRule(rawjson.String | rawjson.Array), mayNumber("timestamp")}},
	"assistant": {fields: []fieldRule{
		{key: "content", kinds: rawjson.Array, elements: rawjson.Object, each: piAnswerBlocks},
		{key: "usage", kinds: rawjson.Object, members: usageRules, fill: noUsage},
		mayText("api"), mayText("provider"), mayText("model"), mayText("responseModel"),
		mayText("stopReason"), mayText("errorMessage"), mayNumber("timestamp"),
	}},
	"toolResult": {fields: []fieldRule{
		needText("toolCallId"), needText("toolName"), contentRule(rawjson.Array), mayBool("isError"), piUsage, mayNumber("timestamp"),
	}},
	"bashExecution": {fields: []fieldRule{
		needText("command"), {key: "output", kinds: rawjson.String, fill: `"output":""`},
		mayNumber("exitCode"), mayBool("cancelled"), mayBool("truncated"), mayBool("excludeFromContext"), mayNumber("timestamp"),
	}},
	"custom": {fields: []fieldRule{
		needText("customType"), contentRule(rawjson.String | rawjson.Array), mayBool("display"), mayNumber("timestamp"),
	}},
	"branchSummary":     {fields: []fieldRule{needText("summary"), mayText("fromId"), mayNumber("timestamp")}},
	"compactionSummary": {fields: []fieldRule{needText("summary"), {key: "tokensBefore", kinds: rawjson.Number}, mayNumber("timestamp")}},
}}}

// piEntryRules are the rules for each type that can be appended.
var piEntryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage:             {{key: "message", kinds: rawjson.Object, object: piMessageRules}},
	sessioncore.TypeThinkingLevelChange: {{key: "thinkingLevel", kinds: rawjson.String}},
	sessioncore.TypeModelChange:         oldModelRules,
	sessioncore.TypeCompaction: {
		{key: "summary", kinds: rawjson.String},
		{key: "firstKeptEntryId", kinds: rawjson.String},
		{key: "tokensBefore", kinds: rawjson.Number},
		{key: "systemMessage", kinds: rawjson.Object | rawjson.Null, optional: true, object: piSystem},
		piUsage, mayBool("fromHook"),
	},
	sessioncore.TypeBranchSummary: {
		{key: "fromId", kinds: rawjson.String, notEmpty: true},
		{key: "summary", kinds: rawjson.String},
		piUsage, mayBool("fromHook"),
	},
	sessioncore.TypeCustom: {{key: "customType", kinds: rawjson.String}},
	sessioncore.TypeCustomMessage: {
		{key: "customType", kinds: rawjson.String},
		contentRule(rawjson.String | rawjson.Array),
		{key: "display", kinds: rawjson.Bool},
	},
	sessioncore.TypeLabel: {
		{key: "targetId", kinds: rawjson.String},
		{key: "label", kinds: rawjson.String | rawjson.Null, optional: true},
	},
	sessioncore.TypeSessionInfo: {{key: "name", kinds: rawjson.String}},
	sessioncore.TypeUsage: {
		needText("kind"),
		{key: "provider", kinds: rawjson.String, notEmpty: true},
		{key: "model", kinds: rawjson.String, notEmpty: true},
		{key: "usage", kinds: rawjson.Object, members: usageRules},
		mayText("note"),
	},
	sessioncore.TypeContextEdit: {
		{key: "targetId", kinds: rawjson.String, notEmpty: true},
		{key: "replacement", kinds: rawjson.Object | rawjson.Null, members: []fieldRule{
			{key: "content", kinds: rawjson.String | rawjson.Array, elements: rawjson.Object},
		}},
	},
}

// unknownType returns the error for an entry of a type that cannot be appended to a session of dialect d.
func unknownType(d *sessioncore.Dialect, kind sessioncore.EntryType, typ rawjson.Value) error {
	want := "one that can be appended"
	switch kind {
	case sessioncore.TypeUnknown:
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

// batchLine is what later lines of a batch need to know of an earlier one.
type batchLine struct {
	parent   *string
	editable bool
}

// checkEdit returns an error unless a context_edit has a target that pi lets it have: a message that is sent, on the
// branch that ends in parent.
func (b *batch) checkEdit(d *draft, parent *string) error {
	target, _ := d.text.Member(b.dialect.TargetKey).Text()
	if err := b.mustHave(target); err != nil {
		return err
	}
	for parent != nil {
		line, ok := b.ids[*parent]
		if !ok {
			return b.checkEditIn(target, *parent)
		}
		if *parent == target {
			return editError(line.editable)
		}
		parent = line.parent
	}
	return editError(false)
}

// checkEditIn is checkEdit for a parent in the session.
func (b *batch) checkEditIn(target, parent string) error {
	at, err := b.snap.Find(parent)
	if err != nil {
		return err
	}
	for _, e := range b.snap.Path(at) {
		if id, _ := b.snap.ID(e); id == target {
			return editError(isEditable(b.snap.Kind(e), b.snap.Role(e)))
		}
	}
	return editError(false)
}

func editError(ok bool) error {
	if ok {
		return nil
	}
	return &FieldError{Field: "targetId", Want: "a custom_message or a message of a user, an assistant or a tool, on the branch of the new entry"}
}

// isEditable reports whether a context_edit can be about an entry.
func isEditable(kind sessioncore.EntryType, role sessioncore.Role) bool {
	switch role {
	case sessioncore.RoleUser, sessioncore.RoleAssistant, sessioncore.RoleToolResult:
		return kind == sessioncore.TypeMessage
	}
	return kind == sessioncore.TypeCustomMessage
}

// isEditable reports whether a context_edit can be about the entry of a line.
func (d *draft) isEditable() bool {
	role, _ := d.text.Member("message").Member("role").Text()
	return d.kind == sessioncore.TypeCustomMessage ||
		d.kind == sessioncore.TypeMessage && (role == "user" || role == "assistant" || role == "toolResult")
}
