package claude

import (
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// part is a run of texts and images in a user record, or one result.
type part struct {
	content []byte // JSON
	result  agents.Object
}

func (p *part) isResult() bool { return len(p.result) > 0 }

// noContent replaces content in a session of facts.
var noContent = rawjson.Value("[]")

// split returns the parts of a user record's content, and the number of results in it.
func (c *converter) split(content rawjson.Value) (parts []part, results int) {
	if content.IsString() && !content.Is("") {
		return []part{{content: c.sent(content)}}, 0
	}
	var run []byte
	end := func() {
		if len(run) > 0 {
			parts, run = append(parts, part{content: append(run, ']')}), nil
		}
	}
	content.EachObject(c.ofBlock, func(block rawjson.Value, of []rawjson.Member) bool {
		switch members := agents.Object(of); {
		case members.Member("type").Is("tool_result"):
			end()
			parts, results = append(parts, part{result: slices.Clone(members)}), results+1
		case block.IsObject() && !isEmptyText(members):
			switch {
			case len(run) == 0:
				run = append(run, '[')
			case !c.Facts:
				run = append(run, ',')
			}
			if !c.Facts {
				run = appendBlock(run, block)
			}
		}
		return true
	})
	end()
	return parts, results
}

// sent returns content, or none in a session of facts.
func (c *converter) sent(content rawjson.Value) rawjson.Value {
	if c.Facts {
		return noContent
	}
	return content
}

// isEmptyText reports whether a block is an empty text.
func isEmptyText(block agents.Object) bool {
	return block.Member("type").Is("text") && block.Member("text").Is("")
}

// appendContent appends content to a list of blocks, and ends it.
func appendContent(dst []byte, content rawjson.Value) []byte {
	if content.IsString() {
		dst = append(append(append(dst, `{"type":"text","text":`...), content...), '}')
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		if dst[len(dst)-1] != '[' { // it is not the first
			dst = append(dst, ',')
		}
		dst = appendBlock(dst, block)
		return true
	})
	return append(dst, ']')
}

// appendBlock appends a block of content: an image as a session has it, all others unchanged.
func appendBlock(dst []byte, block rawjson.Value) []byte {
	if !block.Member("type").Is("image") {
		return append(dst, block...)
	}
	source := block.Member("source")
	data, mime := source.Member("data"), source.Member("media_type")
	if !data.IsString() || !mime.IsString() {
		return append(dst, block...)
	}
	dst = agents.AppendMember(append(dst, `{"type":"image"`...), "data", data)
	return append(agents.AppendMember(dst, "mimeType", mime), '}')
}
