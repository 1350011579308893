package codex

import (
	"bytes"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

const (
	// imageKind is the kind of the model's calls that make an image.
	imageKind = "image_generation"
	// madeImageEvent is the type of the event at the end of such a call.
	madeImageEvent = "image_generation_end"
)

// imageTypes are the types of images by the beginnings of their base64 data.
var imageTypes = []struct{ begin, mimeType string }{
	{"/9j/", "image/jpeg"},
	{"UklGR", "image/webp"},
	{"R0lGOD", "image/gif"},
}

// madeImage returns the image that the model made, or nil. No member has its type.
func madeImage(call agents.Object) (blocks agents.Blocks) {
	data := call.Member("result")
	if !data.IsString() || data.Is("") {
		return nil
	}
	if blocks.ImageURL(data) {
		return blocks
	}
	mimeType := "image/png" // the program's default
	for _, t := range imageTypes {
		if bytes.HasPrefix(data[1:], []byte(t.begin)) { // behind the quote
			mimeType = t.mimeType
		}
	}
	blocks.Image(agents.Quoted(mimeType), data)
	return blocks
}

// madeImageArguments returns the arguments of a call that made an image: its prompt, and the file where the
// program saved the image, which only its own record tells.
func madeImageArguments(call agents.Object) rawjson.Value {
	prompt := call.Member("revised_prompt")
	file := call.AnyOf("saved_path", "savedPath")
	if !file.IsString() {
		return prompt
	}
	args := []byte(`{"path":`)
	args = append(args, pathOf(file)...)
	args = agents.AppendText(args, "input", prompt)
	return append(args, '}')
}

// imageCall adds a call that made an image, and its result if the item has the image, unless an event did.
func (c *converter) imageCall(item agents.Object, id rawjson.Value) {
	text, _ := id.Text()
	if c.calls[text].done {
		return
	}
	c.flushEvents(len(c.events))
	c.call(id, agents.Quoted(imageKind), madeImageArguments(item))
	image := madeImage(item)
	if len(image) > 0 {
		c.result(id, nil, &outcome{blocks: image})
	}
}

// isSealed reports whether a block is ciphertext for the provider.
func isSealed(block rawjson.Value) bool {
	if block.Member("type").Is("encrypted_content") {
		return true
	}
	hasText := block.Member("text") != nil
	return block.Member("encrypted_content").IsString() && !hasText
}
