package claude

import (
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

// contentPart is a run of texts and images in a user record, or one result.
type contentPart struct {
	content agents.Blocks // of a run
	result  agents.Object // the members of a result; nil for a run
}

func (p *contentPart) isResult() bool { return len(p.result) > 0 }

// countResults returns how many of the parts are results.
func countResults(parts []contentPart) int {
	results := 0
	for i := range parts {
		if parts[i].isResult() {
			results++
		}
	}
	return results
}

// split returns the parts of a user record's content, none for an empty one. They are valid as long as content;
// for a bill they have no texts.
func (c *converter) split(content rawjson.Value) (parts []contentPart) {
	if content.IsString() && !content.Is("") {
		return []contentPart{{content: agents.Blocks(content)}}
	}
	inRun := false // the last part is a run, which the next text or image goes on with
	content.EachObject(c.ofBlock, func(block rawjson.Value, of []rawjson.Member) bool {
		members := agents.Object(of)
		switch {
		case members.Member("type").Is("tool_result"):
			result := slices.Clone(members) // their memory is the next block's
			parts = append(parts, contentPart{result: result})
			inRun = false
		case block.IsObject() && !isEmptyText(members):
			if !inRun {
				parts = append(parts, contentPart{})
				inRun = true
			}
			if !c.Facts {
				run := &parts[len(parts)-1]
				addBlock(&run.content, block, members)
			}
		}
		return true
	})
	return parts
}

// blocksOf returns the content of a result, nil for a bill. It is valid until the next call.
func (c *converter) blocksOf(content rawjson.Value) agents.Blocks {
	if c.Facts {
		return nil
	}
	blocks := c.blocks[:0]
	blocks.Text(content)
	content.EachObject(c.ofBlock, func(block rawjson.Value, members []rawjson.Member) bool {
		addBlock(&blocks, block, members)
		return true
	})
	c.blocks = blocks
	if cap(blocks) > jsonl.KeepBuffer { // too large to keep
		c.blocks = nil
	}
	return blocks
}

// isEmptyText reports whether a block is an empty text.
func isEmptyText(block agents.Object) bool {
	return block.Member("type").Is("text") && block.Member("text").Is("")
}

// addBlock adds a block of content, with its members: a text or an image as a session has it, all others unchanged.
func addBlock(to *agents.Blocks, block rawjson.Value, members agents.Object) {
	source := members.Member("source")
	mimeType := source.Member("media_type")
	data := source.Member("data")
	switch {
	case block.IsString():
		to.Text(block)
	case members.Member("type").Is("image") && data.IsString() && mimeType.IsString():
		to.Image(mimeType, data)
	default:
		to.Other(block)
	}
}
