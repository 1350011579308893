package sent

import "sessionfs/sessioncore/internal/rawjson"

// This file changes the content of answers and of results of tools.

// replaced returns an object with a member replaced, and others removed.
func replaced(text rawjson.Value, key string, value rawjson.Value, others ...string) []byte {
	var edits rawjson.Edits
	return edits.Object(text, 0, `"`+key+`":`+string(value), func(m rawjson.Member) bool {
		gone := m.KeyIs(key)
		for _, other := range others {
			gone = gone || m.KeyIs(other)
		}
		return gone
	}).Apply(text)
}

// repaired returns an answer without the tool calls that have no result, and without the thinking that was
// interrupted. In an answer that loses a call, thinking is not bound to it any more.
func (b *builder) repaired(m *message, text rawjson.Value) []byte {
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
				block = edits.Object(block, 0, "", func(m rawjson.Member) bool { return m.KeyIs("thinkingSignature") }).Apply(block)
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
	blank := func(block rawjson.Value, key string) bool {
		text, _ := block.Member(key).Text()
		return rawjson.TrimSpace(text) == ""
	}
	end := len(blocks)
	for end > 0 && blocks[end-1].Member("type").Is("text") && blank(blocks[end-1], "text") {
		end--
	}
	start := end
	for start > 0 {
		block := blocks[start-1]
		if !block.Member("type").Is("thinking") || blank(block, "thinking") || block.Member("thinkingSignature").Truthy() {
			break
		}
		start--
	}
	if start == end {
		return blocks
	}
	return blocks[:start]
}

// pruned returns the result of a tool whose output was shortened later: one text in the place of several.
func pruned(text rawjson.Value) []byte {
	var joined []byte
	first := -1
	blocks := elements(text.Member("content"))
	for i, block := range blocks {
		if block.Member("type").Is("text") {
			part, _ := block.Member("text").Text()
			joined = append(joined, part...)
			if first < 0 {
				first = i
			}
		}
	}
	if len(joined) == 0 {
		joined = []byte("[Output truncated]")
	}
	var content []rawjson.Value
	if first < 0 {
		content = append(content, textBlock(string(joined)))
	}
	for i, block := range blocks {
		switch {
		case !block.Member("type").Is("text"):
			content = append(content, block)
		case i == first:
			content = append(content, textBlock(string(joined)))
		}
	}
	return replaced(text, "content", list(content...))
}
