package sent

import (
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

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
