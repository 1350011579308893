package sent

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// source says of what a message is made.
type source uint8

const (
	ofMessage    source = iota // a message entry
	ofCustom                   // a custom_message
	ofBranch                   // a branch_summary
	ofCompaction               // a compaction
	ofNotes                    // the notebook of a custom entry
)

// message is one of the messages of the branch, with what later steps need to know of it.
type message struct {
	entry       sessioncore.Entry
	of          source
	role        string
	calls       []string // keys of the tool calls of an answer
	says        bool     // an answer has a block that is neither a tool call nor encrypted thinking
	refused     bool     // an answer that the provider refused
	result      string   // key of the tool call that it is the result of
	failed      bool     // an answer that was aborted, or ended in an error
	interrupted bool     // the note that follows an answer whose thinking was interrupted
	strips      bool     // tool calls without a result are left out
	demotes     bool     // thinking that was interrupted is left out
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
	reset, compaction := b.last(sessioncore.TypeResetBoundary), b.last(sessioncore.TypeCompaction)
	var err error
	switch {
	case reset > compaction:
		err = b.takeAll(b.path[reset+1:])
	case compaction >= 0:
		err = b.takeCompacted(compaction, reset)
	default:
		err = b.takeAll(b.path)
	}
	if err != nil {
		return err
	}
	return b.takeNotes()
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
	if !ok {
		return -1
	}
	e, err := b.s.Find(text)
	if err != nil {
		return -1
	}
	for i, p := range b.path {
		if p == e {
			return i
		}
	}
	return -1
}

func (b *builder) takeAll(entries []sessioncore.Entry) error {
	for _, e := range entries {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		switch b.s.Kind(e) {
		case sessioncore.TypeMessage, sessioncore.TypeCustomMessage, sessioncore.TypeBranchSummary:
		default:
			continue
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return err
		}
		b.take(e, text)
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
		m.of, m.role, m.interrupted = ofCustom, "custom", custom.Is(interruptedThinking)
	case sessioncore.TypeBranchSummary:
		if !text.Member("summary").Truthy() {
			return
		}
		m.of, m.role = ofBranch, "branchSummary"
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
		text.Member("content").EachElement(func(block rawjson.Value, _ int) bool {
			switch kind := block.Member("type"); {
			case kind.Is("toolCall"):
				m.calls = append(m.calls, callKey(block.Member("id")))
			case !kind.Is("redactedThinking"):
				m.says = true
			}
			return true
		})
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

// saysAnything reports whether an answer that ended in an error has anything but empty blocks.
func saysAnything(content rawjson.Value) bool {
	says := false
	notBlank := func(v rawjson.Value) bool {
		text, _ := v.Text()
		return rawjson.TrimSpace(text) != ""
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		kind, _ := block.Member("type").Text()
		switch kind {
		case "text":
			says = notBlank(block.Member("text"))
		case "thinking":
			says = notBlank(block.Member("thinking")) || notBlank(block.Member("thinkingSignature"))
		case "redactedThinking":
			says = notBlank(block.Member("data"))
		case "fallback":
		default:
			says = true
		}
		return !says
	})
	return says
}

// isContent reports whether the content of a custom message can be sent.
func isContent(content rawjson.Value) bool { return content.IsString() || content.IsArray() }
