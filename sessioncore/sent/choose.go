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
		if custom.Is(prewalkPlan) || custom.Is(vibeModeContext) || !isContent(text.Member("content")) ||
			text.Member("excludeFromContext").Truthy() {
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
	for m := range data.EachMember {
		if !m.KeyIs("version") && !m.KeyIs("text") {
			return "", false
		}
	}
	notes, ok := data.Member("text").Text()
	return notes, ok && len(notes) <= maxNotes
}

// takeCompacted adds the messages of a path whose entry at is the last compaction.
func (b *builder) takeCompacted(at, reset int) error {
	text, _, _, err := b.s.LoadedText(b.path[at])
	if err != nil {
		return err
	}
	b.messages = append(b.messages, message{entry: b.path[at], role: "compactionSummary"})
	kept := text.Member("firstKeptEntryId")
	first, through := b.find(kept), b.find(text.Member("providerReplayThroughEntryId"))
	if text.Member("details").Member("kind").Is(rollover) {
		if err := b.takeRequest(first, at, reset); err != nil {
			return err
		}
	}
	provider, kind := providerPayload(text)
	if kind == remotePayload || provider != nil && kept.Is("") && through >= 0 {
		first = -1
		if through >= 0 {
			first = through + 1
		}
	}
	if first >= 0 && first < at {
		if err := b.takeAll(b.path[first:at]); err != nil {
			return err
		}
	}
	return b.takeAll(b.path[at+1:])
}

// takeRequest adds the last request of the user before a compaction if the compaction, whose first kept entry is first,
// drops it.
func (b *builder) takeRequest(first, at, reset int) error {
	for i := at - 1; i > reset; i-- {
		e := b.path[i]
		if kind := b.s.Kind(e); kind != sessioncore.TypeMessage && kind != sessioncore.TypeCustomMessage {
			continue
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return err
		}
		if b.isRequest(e, text) {
			if i < first {
				b.take(e, text)
			}
			return nil
		}
	}
	return nil
}

// isRequest reports whether an entry is what a user asked.
func (b *builder) isRequest(e sessioncore.Entry, text rawjson.Value) bool {
	if b.s.Kind(e) == sessioncore.TypeMessage {
		text = messageOf(text)
		if role := text.Member("role"); !role.Is("custom") {
			return role.Is("user")
		}
	} else if !isContent(text.Member("content")) {
		return false
	}
	custom := text.Member("customType")
	return (custom.Is(skillPrompt) || custom.Is(collabPrompt)) && text.Member("attribution").Is("user")
}

// Kinds of history that a provider keeps.
const (
	remotePayload    = "openaiResponsesHistory"
	anthropicPayload = "anthropicCompaction"
)

// providerPayload returns the history that a provider keeps for a compaction, and its kind; nil if there is none.
func providerPayload(text rawjson.Value) (rawjson.Value, string) {
	preserved := text.Member("preserveData")
	remote := preserved.Member("openaiRemoteCompaction")
	provider, items := remote.Member("provider"), remote.Member("replacementHistory")
	isOther := func(item rawjson.Value) bool { return !item.IsObject() }
	if provider.IsString() && provider.Truthy() && items.IsArray() && !slices.ContainsFunc(elements(items), isOther) {
		return object("type", remotePayload, "provider", provider, "items", items), remotePayload
	}
	kept := preserved.Member(anthropicPayload)
	filled := func(key string) rawjson.Value {
		if v := kept.Member(key); v.IsString() && v.Truthy() {
			return v
		}
		return nil
	}
	if filled("provider") == nil || filled("content") == nil {
		return nil, ""
	}
	return object("type", anthropicPayload, "provider", filled("provider"), "content", filled("content"),
		"encryptedContent", filled("encryptedContent"), "filesText", filled("filesText")), anthropicPayload
}

// repair decides what of the messages is left out. Tool calls without a result on the branch are, as a provider would
// take them for calls that failed, and so is an answer of which nothing is left. So are answers that were aborted or
// ended in an error, with the results of their tool calls. One that the note on its interrupted thinking follows stays,
// without that thinking.
func (b *builder) repair() {
	b.paired = map[string]bool{}
	for i := range b.messages {
		if m := &b.messages[i]; m.role == "toolResult" {
			b.paired[m.result] = true
		}
	}
	isPaired := func(call string) bool { return b.paired[call] }
	results := map[string][]*message{} // the results after the message looked at that are not dropped, by their call
	next := len(b.messages)            // the first message after it that is not dropped
	for i := len(b.messages) - 1; i >= 0; i-- {
		m := &b.messages[i]
		m.strips = slices.ContainsFunc(m.calls, func(call string) bool { return !b.paired[call] })
		if m.strips && !m.says && !slices.ContainsFunc(m.calls, isPaired) {
			m.dropped = true
			continue
		}
		m.demotes = m.role == "assistant" && next < len(b.messages) && b.messages[next].interrupted
		if m.failed && !m.demotes {
			m.dropped = true
			for _, call := range m.calls {
				for _, result := range results[call] {
					result.dropped = true
				}
				delete(results, call)
			}
			for next < len(b.messages) && b.messages[next].dropped {
				next++
			}
			continue
		}
		if m.role == "toolResult" {
			results[m.result] = append(results[m.result], m)
		}
		next = i
	}
}

// repaired returns an answer without the tool calls that have no result, and without the thinking that was
// interrupted. In an answer that loses a call, thinking is not bound to it any more.
func (b *builder) repaired(m *message, text rawjson.Value) rawjson.Value {
	blocks := elements(text.Member("content"))
	if m.strips {
		kept := blocks[:0]
		for _, block := range blocks {
			kind := block.Member("type")
			switch {
			case kind.Is("toolCall") && !b.paired[callKey(block.Member("id"))], kind.Is("redactedThinking"):
				continue
			case kind.Is("thinking") && block.Member("thinkingSignature").Truthy():
				var edits rawjson.Edits
				block = edits.Object(block, 0, "", named("thinkingSignature")).Apply(block)
			}
			kept = append(kept, block)
		}
		blocks = kept
	}
	if m.demotes {
		blocks = withoutInterrupted(blocks)
	}
	return replaced(text, "content", list(blocks...))
}

// withoutInterrupted returns the blocks of an answer before the thinking at its end that is not signed.
func withoutInterrupted(blocks []rawjson.Value) []rawjson.Value {
	end := len(blocks)
	for end > 0 && blocks[end-1].Member("type").Is("text") && isBlank(blocks[end-1].Member("text")) {
		end--
	}
	start := end
	for start > 0 {
		block := blocks[start-1]
		if !block.Member("type").Is("thinking") || isBlank(block.Member("thinking")) || block.Member("thinkingSignature").Truthy() {
			break
		}
		start--
	}
	if start == end {
		return blocks
	}
	return blocks[:start]
}
