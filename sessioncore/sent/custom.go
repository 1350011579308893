package sent

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// composeCustom returns what is sent for a message of an extension: mostly as of the developer, and as of the user what
// a user asked and what has images. isEntry says that it is a custom_message entry, and isHook that it is of the older kind.
func composeCustom(text rawjson.Value, isEntry, isHook bool, at rawjson.Value) rawjson.Value {
	customType, content, by := text.Member("customType"), text.Member("content"), text.Member("attribution")
	if !isContent(content) {
		return nil
	}
	if isEntry && (!customType.IsString() || !customType.Truthy()) {
		customType = quoted(otherCustom)
	}
	if isEntry && by != nil && !by.Is("user") {
		by = byAgent
	}
	asked := !isHook && by.Is("user")
	if asked && customType.Is(collabPrompt) {
		return written("user", interjected(content), byUser, at)
	}
	if said, ok := content.Text(); ok {
		content = list(textBlock(said))
	}
	if asked && customType.Is(skillPrompt) {
		return written("user", content, byUser, at)
	}
	texts, images := textsAndImages(content)
	if len(images) == 0 {
		return written("developer", content, by, at)
	}
	var messages []rawjson.Value
	if len(texts) > 0 {
		messages = append(messages, written("developer", list(texts...), by, at))
	}
	lead := textBlock("Images attached to " + customType.AsKey() + ".")
	return joined(append(messages, written("user", listed(lead, images), by, at)))
}

// textsAndImages returns the blocks of text of a content, and those of images.
func textsAndImages(content rawjson.Value) (texts, images []rawjson.Value) {
	for _, block := range elements(content) {
		switch kind := block.Member("type"); {
		case kind.Is("text"):
			texts = append(texts, block)
		case kind.Is("image"):
			images = append(images, block)
		}
	}
	return texts, images
}

// interjected returns the content of a message that the user sent while the agent worked, in the words around it that
// tell the model so. Content without text stays.
func interjected(content rawjson.Value) rawjson.Value {
	if text, isText := content.Text(); isText && text != "" {
		return quoted(interjection(text))
	}
	texts, images := textsAndImages(content)
	parts := make([]string, len(texts))
	for i, block := range texts {
		parts[i], _ = block.Member("text").Text()
	}
	text := strings.Join(parts, "\n")
	if text == "" {
		return content
	}
	return listed(textBlock(interjection(text)), images)
}

// steered returns a user's message that was sent while the agent worked.
func steered(text rawjson.Value) rawjson.Value {
	content := text.Member("content")
	if changed := interjected(content); string(changed) != string(content) {
		return replaced(text, "content", changed, "steering")
	}
	return text
}
