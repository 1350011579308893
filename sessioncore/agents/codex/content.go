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
		isText := typ.Is("input_text") || typ.Is("output_text") || typ.Is("text") || typ.Is("inputText")
		switch {
		case isText && text.IsString():
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

// outputBlocks returns the output of a tool: a text, blocks, or an object with one. Other values become their JSON text,
// a missing one nothing.
func outputBlocks(output rawjson.Value) agents.Blocks {
	content := output.Member("content")
	switch {
	case output.Missing():
		return nil
	case output.IsString():
		return textBlock(output)
	case hasContentBlock(output):
		return contentBlocks(output)
	case content.IsString() || content.IsArray():
		return contentBlocks(content)
	}
	return textBlock(agents.Quoted(string(output)))
}

// hasContentBlock reports whether an output is a list with a block of content in it.
func hasContentBlock(output rawjson.Value) bool {
	for block := range output.EachElement {
		isImage := block.Member("type").Is("input_image")
		if isImage || block.Member("text").IsString() || isSealed(block) {
			return true
		}
	}
	return false
}
