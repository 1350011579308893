package codex

import (
	"regexp"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// contentBlocks returns the blocks of a message in a session's words, with commas between them.
// Blocks of this program alone stay as they are, but for ciphertext.
func contentBlocks(content rawjson.Value) (blocks agents.Blocks) {
	if content.IsString() && !content.Is("") {
		blocks.Text(content)
	}
	for block := range content.EachElement {
		typ := block.Member("type")
		text := block.Member("text")
		switch {
		case text.IsString() &&
			(typ.Is("input_text") || typ.Is("output_text") || typ.Is("text") || typ.Is("inputText")):
			blocks.Text(text)
		case isSealed(block):
		case typ.Is("input_image") && blocks.ImageURL(block.Member("image_url")):
		default:
			blocks.Other(block)
		}
	}
	return blocks
}

// imageTag matches the texts around an image. Events and titles lack them.
var imageTag = regexp.MustCompile(`</?image( [^<>]*)?>`)

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
		for block := range output.EachElement {
			if block.Member("text").IsString() || block.Member("type").Is("input_image") || isSealed(block) {
				return contentBlocks(output)
			}
		}
	case output.IsObject():
		if content := output.Member("content"); content.IsString() || content.IsArray() {
			return contentBlocks(content)
		}
	case output.Missing():
		return nil
	}
	return textBlock(agents.Quoted(string(output)))
}
