package sent

import (
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// message is one of the messages of the branch, with what later steps need to know of it.
type message struct {
	entry       sessioncore.Entry
	role        string
	calls       []string // keys of the tool calls of an answer
	says        bool     // an answer has a block that is neither a tool call nor encrypted thinking
	refused     bool     // an answer that the provider refused
	result      string   // key of the tool call that it is the result of
	failed      bool     // an answer that was aborted, or ended in an error
	interrupted bool     // the note that follows an answer whose thinking was interrupted
	strips      bool     // tool calls without a result are left out
	demotes     bool     // thinking that was interrupted is left out
	dropped     bool
}

// Types of custom messages that the client treats in its own way.
const (
	prewalkPlan         = "prewalk-plan"
	vibeModeContext     = "vibe-mode-context"
	interruptedThinking = "interrupted-thinking"
	skillPrompt         = "skill-prompt"
	collabPrompt        = "collab-prompt"
	otherCustom         = "custom-message" // of one that has no type
	contextNotes        = "experimental_context_notes"
	rollover            = "experimental-context-rollover"
)

// choose collects the messages of the path that are sent, in order: what follows the last /clear, or the summary of the
// last compaction, what that keeps, and what follows it.
func (b *builder) choose() error {
	if err := b.takeNotes(); err != nil {
		return err
	}
	reset, compaction := b.last(sessioncore.TypeResetBoundary), b.last(sessioncore.TypeCompaction)
	if compaction > reset {
		return b.takeCompacted(compaction, reset)
	}
	return b.takeAll(b.path[reset+1:])
}

// last returns the index in the path of the last entry of a type, or -1.
func (b *builder) last(kind sessioncore.EntryType) int {
	for i := len(b.path) - 1; i >= 0; i-- {
		if b.s.Kind(b.path[i]) == kind {
			return i
		}
	}
	return -1
}

// find returns the index in the path of the entry with the id that a value is, or -1.
func (b *builder) find(id rawjson.Value) int {
	text, ok := id.Text()
	if !ok || text == "" {
		return -1
	}
	e, err := b.s.Find(text)
	if err != nil {
		return -1
	}
	return slices.Index(b.path, e)
}

func (b *builder) takeAll(entries []sessioncore.Entry) error {
	for _, e := range entries {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		switch b.s.Kind(e) {
		case sessioncore.TypeMessage, sessioncore.TypeCustomMessage, sessioncore.TypeBranchSummary:
			text, _, _, err := b.s.LoadedText(e)
			if err != nil {
				return err
			}
			b.take(e, text)
		}
	}
	return nil
}

// take adds the message of an entry, if it has one that is sent.
func (b *builder) take(e sessioncore.Entry, text rawjson.Value) {
	m := message{entry: e}
	switch b.s.Kind(e) {
	case sessioncore.TypeMessage:
		if text = messageOf(text); !text.IsObject() || !m.look(text) {
			return
		}
	case sessioncore.TypeCustomMessage:
		custom := text.Member("customType")
		if custom.Is(prewalkPlan) || custom.Is(vibeModeContext) || !isContent(text.Member("content")) {
			return
		}
		m.role, m.interrupted = "custom", custom.Is(interruptedThinking)
	case sessioncore.TypeBranchSummary:
		if m.role = "branchSummary"; !text.Member("summary").Truthy() {
			return
		}
	}
	b.messages = append(b.messages, m)
}

// messageOf returns the message of a message entry's text.
func messageOf(text rawjson.Value) rawjson.Value { return text.Member("message") }

// look takes from a message what later steps need. It reports false for an answer that is not sent at all.
func (m *message) look(text rawjson.Value) bool {
	m.role, _ = text.Member("role").Text()
	switch m.role {
	case "assistant":
		stop := text.Member("stopReason")
		m.failed = stop.Is("aborted") || stop.Is("error")
		if text.Member("retryRecovery").Truthy() || stop.Is("error") && !saysAnything(text.Member("content")) {
			return false
		}
		details := text.Member("stopDetails").Member("type")
		m.refused = stop.Is("error") && (details.Is("refusal") || details.Is("sensitive"))
		for _, block := range elements(text.Member("content")) {
			switch kind := block.Member("type"); {
			case kind.Is("toolCall"):
				m.calls = append(m.calls, callKey(block.Member("id")))
			case !kind.Is("redactedThinking"):
				m.says = true
			}
		}
	case "toolResult":
		m.result = callKey(text.Member("toolCallId"))
	case "custom":
		m.interrupted = text.Member("customType").Is(interruptedThinking)
	}
	return true
}

// callKey returns a text that is the same for equal ids of tool calls.
func callKey(id rawjson.Value) string {
	if text, ok := id.Text(); ok {
		return `"` + text
	}
	return string(id)
}

// sayings are the members of a block that make it say something if they are not blank. A block of another type does.
var sayings = map[string][]string{"text": {"text"}, "thinking": {"thinking", "thinkingSignature"}, "redactedThinking": {"data"}, "fallback": nil}

// saysAnything reports whether an answer that ended in an error has anything but empty blocks.
func saysAnything(content rawjson.Value) bool {
	return slices.ContainsFunc(elements(content), func(block rawjson.Value) bool {
		kind, _ := block.Member("type").Text()
		keys, known := sayings[kind]
		return !known || slices.ContainsFunc(keys, func(key string) bool { return !isBlank(block.Member(key)) })
	})
}

func isBlank(v rawjson.Value) bool {
	text, _ := v.Text()
	return rawjson.TrimSpace(text) == ""
}

// isContent reports whether the content of a custom message can be sent.
func isContent(content rawjson.Value) bool { return content.IsString() || content.IsArray() }

const (
	// maxNotes is the size in bytes of the longest notebook that the client reads.
	maxNotes = 16_384
	// maxNotesEntry is the size in bytes of the longest text of an entry that can have one: an escape takes six bytes.
	maxNotesEntry = 6*maxNotes + 64<<10
)

// takeNotes adds the notebook of the branch, which comes before everything else, if it has one since the last /clear.
func (b *builder) takeNotes() error {
	for i := len(b.path) - 1; i >= 0; i-- {
		e := b.path[i]
		if b.s.Kind(e) == sessioncore.TypeResetBoundary {
			return nil
		}
		if b.s.Kind(e) != sessioncore.TypeCustom {
			continue
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return err
		}
		if notes, ok := notesOf(text); ok {
			if notes != "" {
				b.messages = append(b.messages, message{entry: e, role: roleNotes})
			}
			return nil
		}
	}
	return nil
}

// roleNotes is our role for a notebook. It is no role in a message.
const roleNotes = "notes\x00"

// notesOf returns the notebook that a custom entry has.
func notesOf(text rawjson.Value) (string, bool) {
	data := text.Member("data")
	if len(text) > maxNotesEntry || !text.Member("customType").Is(contextNotes) || string(data.Member("version")) != "1" {
		return "", false
	}
	others := false
	data.EachMember(func(m rawjson.Member) bool {
		others = others || !m.KeyIs("version") && !m.KeyIs("text")
		return true
	})
	notes, ok := data.Member("text").Text()
	return notes, ok && !others && len(notes) <= maxNotes
}
