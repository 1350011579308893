package codex

import (
	"bytes"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// contentBlocks returns the blocks of a message in a session's words, with commas between them.
// Blocks of this program alone stay as they are.
func contentBlocks(content rawjson.Value) (blocks agents.Blocks) {
	if content.IsString() && !content.Is("") {
		blocks.Text(content)
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		typ, text := block.Member("type"), block.Member("text")
		switch {
		case text.IsString() &&
			(typ.Is("input_text") || typ.Is("output_text") || typ.Is("text") || typ.Is("inputText")):
			blocks.Text(text)
		case typ.Is("input_image"):
			blocks.Other(image(block))
		default:
			blocks.Other(block)
		}
		return true
	})
	return blocks
}

// image returns an image: the data in its URL, or the unchanged block if it has none.
func image(block rawjson.Value) rawjson.Value {
	url := block.Member("image_url")
	body, found := bytes.CutPrefix(url, []byte(`"data:`))
	mime, data, base64 := bytes.Cut(body, []byte(";base64,"))
	if !found || !base64 || bytes.ContainsAny(mime, `"\;,`) {
		return block
	}
	out := append(append([]byte(`{"type":"image","data":"`), data...), `,"mimeType":"`...)
	return append(append(out, mime...), `"}`...)
}

// textBlock returns the content of one text.
func textBlock(text rawjson.Value) (blocks agents.Blocks) {
	blocks.Text(text)
	return blocks
}

// outputBlocks returns the output of a tool: a text, blocks, or an object with one.
func outputBlocks(output rawjson.Value) agents.Blocks {
	switch {
	case output.IsString():
		return textBlock(output)
	case output.IsArray():
		isContent := false
		output.EachElement(func(block rawjson.Value, _ int) bool {
			isContent = block.Member("text").IsString() || block.Member("type").Is("input_image")
			return !isContent
		})
		if isContent {
			return contentBlocks(output)
		}
	case output.IsObject():
		if content := output.Member("content"); content.IsString() || content.IsArray() {
			return contentBlocks(content)
		}
	case len(output) == 0:
		return nil
	}
	return textBlock(rawjson.AppendQuoted(nil, string(output)))
}
