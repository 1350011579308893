package writer

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file has the rules for entries of pi sessions (docs/format.md, pi): what the code of 0.73.1, 0.87.1 and 1.5.2
// that opens, sends, counts and lists sessions needs. Types and roles that only omp has are refused: pi would pass over
// them in silence.

// piUsage is a rule for what something cost, where pi counts it.
var piUsage = mayObject("usage", usageShape)

// piSystem is a system message: it sets or changes parts of the prompt, and the tools.
var piSystem = of(
	contentRule, mayObject("sections", nil),
	mayList("toolsAdded", of(needText("name"))), mayList("toolsRemoved", of(needText("name"))), messageTime,
)

// piAnswerBlocks are the blocks of an assistant.
var piAnswerBlocks = blocks(map[string]*shape{"text": textBlock, "thinking": thinkingBlock, "toolCall": toolCall})

// piMessageRules are the rules for a message, by its role.
var piMessageRules = roles(map[string]*shape{
	"system": piSystem, "user": userRole,
	"assistant": of(
		needList("content", piAnswerBlocks), answerUsage, mayText("api"), mayText("provider"), mayText("model"),
		mayText("responseModel"), mayText("stopReason"), mayText("errorMessage"), messageTime,
	),
	"toolResult": of(
		needText("toolCallId"), needText("toolName"), needList("content", writtenBlocks), mayBool("isError"), piUsage, messageTime,
	),
	"bashExecution": of(
		needText("command"), outputRule, mayNumber("exitCode"), mayBool("cancelled"), mayBool("truncated"),
		mayBool("excludeFromContext"), messageTime,
	),
	"custom": extensionRole, "branchSummary": branchSummaryRole,
	"compactionSummary": of(needText("summary"), needNumber("tokensBefore"), messageTime),
})

// piEntryRules are the rules for each type that can be appended.
var piEntryRules = map[sessioncore.EntryType][]fieldRule{
	sessioncore.TypeMessage:             {needObject("message", piMessageRules)},
	sessioncore.TypeThinkingLevelChange: {needText("thinkingLevel")},
	sessioncore.TypeModelChange:         oldModelRules,
	sessioncore.TypeCompaction: {
		needText("summary"), needText("firstKeptEntryId"), needNumber("tokensBefore"),
		mayObject("systemMessage", piSystem), piUsage, mayBool("fromHook"),
	},
	sessioncore.TypeBranchSummary: {needName("fromId"), needText("summary"), piUsage, mayBool("fromHook")},
	sessioncore.TypeCustom:        {needText("customType")},
	sessioncore.TypeCustomMessage: {needText("customType"), contentRule, needBool("display")},
	sessioncore.TypeLabel:         {needText("targetId"), mayText("label")},
	sessioncore.TypeSessionInfo:   {needText("name")},
	sessioncore.TypeUsage: {
		needText("kind"), needName("provider"), needName("model"), needObject("usage", usageShape), mayText("note"),
	},
	sessioncore.TypeContextEdit: {
		needName("targetId"),
		{key: "replacement", kinds: rawjson.Object | rawjson.Null, object: of(blocksOrText)},
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
