package codex

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
)

// contentBlocks returns the blocks of a message in a session's words, with commas between them.
// Blocks of this program alone stay as they are.
func contentBlocks(content rawjson.Value) (blocks []byte) {
	if text, ok := content.Bytes(); ok {
		if len(text) == 0 {
			return nil
		}
		return textBlock(nil, content)
	}
	content.EachElement(func(block rawjson.Value, _ int) bool {
		if !block.IsObject() {
			return true
		}
		if len(blocks) > 0 {
			blocks = append(blocks, ',')
		}
		typ, text := block.Member("type"), block.Member("text")
		switch {
		case text.IsString() &&
			(typ.Is("input_text") || typ.Is("output_text") || typ.Is("text") || typ.Is("inputText")):
			blocks = textBlock(blocks, text)
		case typ.Is("input_image"):
			blocks = imageBlock(blocks, block)
		default:
			blocks = append(blocks, block...)
		}
		return true
	})
	return blocks
}

func textBlock(dst []byte, text rawjson.Value) []byte {
	return append(append(append(dst, `{"type":"text","text":`...), text...), '}')
}

// imageBlock appends an image: the data in its URL, or the unchanged block if it has none.
func imageBlock(dst []byte, block rawjson.Value) []byte {
	url := block.Member("image_url")
	body, found := bytes.CutPrefix(url, []byte(`"data:`))
	mime, data, base64 := bytes.Cut(body, []byte(";base64,"))
	if !found || !base64 || bytes.ContainsAny(mime, `"\;,`) {
		return append(dst, block...)
	}
	dst = append(append(dst, `{"type":"image","data":"`...), data...)
	return append(append(append(dst, `,"mimeType":"`...), mime...), `"}`...)
}

// outputBlocks returns the output of a tool: a text, blocks, or an object with one.
func outputBlocks(output rawjson.Value) []byte {
	switch {
	case output.IsString():
		return textBlock(nil, output)
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
	return textBlock(nil, rawjson.AppendQuoted(nil, string(output)))
}
