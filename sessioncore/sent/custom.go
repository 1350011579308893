package sent

import (
	"strconv"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// custom is the message of an extension.
type custom struct {
	customType, content, attribution rawjson.Value
	hook                             bool // of the older kind
}

// customEntry returns the message of a custom_message entry, with the client's defaults.
func customEntry(text rawjson.Value) custom {
	c := custom{customType: text.Member("customType"), content: text.Member("content")}
	if !c.customType.IsString() || !c.customType.Truthy() {
		c.customType = rawjson.Value(`"` + otherCustom + `"`)
	}
	if by := text.Member("attribution"); by != nil {
		c.attribution = byAgent
		if by.Is("user") {
			c.attribution = byUser
		}
	}
	return c
}

// composeCustom returns what is sent for a message of an extension: mostly as of the developer, and as of the user what
// a user asked and what has images.
func composeCustom(c custom, at rawjson.Value) []byte {
	if !isContent(c.content) {
		return nil
	}
	byUserItself := !c.hook && c.attribution.Is("user")
	if byUserItself && c.customType.Is(collabPrompt) {
		content, _ := interjected(c.content)
		return written("user", content, byUser, at)
	}
	blocks := c.content
	if c.content.IsString() {
		text, _ := c.content.Text()
		blocks = list(textBlock(text))
	}
	if byUserItself && c.customType.Is(skillPrompt) {
		return written("user", blocks, byUser, at)
	}
	var texts, images []rawjson.Value
	for _, block := range elements(blocks) {
		switch kind := block.Member("type"); {
		case kind.Is("text"):
			texts = append(texts, block)
		case kind.Is("image"):
			images = append(images, block)
		}
	}
	if len(images) == 0 {
		return written("developer", blocks, c.attribution, at)
	}
	var out []byte
	if len(texts) > 0 {
		out = append(written("developer", list(texts...), c.attribution, at), ',')
	}
	lead := textBlock("Images attached to " + templated(c.customType) + ".")
	return append(out, written("user", list(append([]rawjson.Value{lead}, images...)...), c.attribution, at)...)
}

// interjected returns the content of a message that the user sent while the agent worked, in the words around it that
// tell the model so. ok is false if there is no text in it; then the content stays.
func interjected(content rawjson.Value) (_ rawjson.Value, ok bool) {
	if text, isText := content.Text(); isText {
		if text == "" {
			return content, false
		}
		return rawjson.AppendQuoted(nil, interjection(text)), true
	}
	var text string
	var images []rawjson.Value
	parts := 0
	for _, block := range elements(content) {
		switch kind := block.Member("type"); {
		case kind.Is("text"):
			if parts++; parts > 1 {
				text += "\n"
			}
			part, _ := block.Member("text").Text()
			text += part
		case kind.Is("image"):
			images = append(images, block)
		}
	}
	if text == "" {
		return content, false
	}
	return list(append([]rawjson.Value{textBlock(interjection(text))}, images...)...), true
}

// steered returns a user's message that was sent while the agent worked.
func steered(text rawjson.Value) []byte {
	content, ok := interjected(text.Member("content"))
	if !ok {
		return plainEdits(text).Apply(text)
	}
	text = plainEdits(text).Apply(text)
	return replaced(text, "content", content, "steering")
}

// time returns the time of an entry in milliseconds since the epoch, null if it cannot be read.
func (b *builder) time(e sessioncore.Entry) rawjson.Value {
	t, ok := b.s.OwnTime(e)
	if !ok {
		return rawjson.Value("null")
	}
	return strconv.AppendInt(nil, t.UnixMilli(), 10)
}

// Kinds of history that a provider keeps.
const (
	remotePayload    = "openaiResponsesHistory"
	anthropicPayload = "anthropicCompaction"
)

// providerPayload returns the history that a provider keeps for a compaction, and its kind; nil if there is none.
func providerPayload(text rawjson.Value) (rawjson.Value, string) {
	preserved := text.Member("preserveData")
	remote := preserved.Member("openaiRemoteCompaction")
	provider, items := remote.Member("provider"), remote.Member("replacementHistory")
	if provider.IsString() && provider.Truthy() && items.IsArray() && allObjects(items) {
		var o object
		o.text("type", remotePayload)
		o.raw("provider", provider)
		o.raw("items", items)
		return o.end(), remotePayload
	}
	kept := preserved.Member(anthropicPayload)
	filled := func(key string) rawjson.Value {
		if v := kept.Member(key); v.IsString() && v.Truthy() {
			return v
		}
		return nil
	}
	if filled("provider") == nil || filled("content") == nil {
		return nil, ""
	}
	var o object
	o.text("type", anthropicPayload)
	for _, key := range []string{"provider", "content", "encryptedContent", "filesText"} {
		o.raw(key, filled(key))
	}
	return o.end(), anthropicPayload
}

func allObjects(array rawjson.Value) bool {
	all := true
	array.EachElement(func(v rawjson.Value, _ int) bool {
		all = all && v.IsObject()
		return all
	})
	return all
}
