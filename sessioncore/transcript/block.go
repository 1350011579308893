package transcript

import (
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// content renders the content of a message: a text, a list of blocks, or any other value.
func (w *renderer) content(v rawjson.Value) {
	switch {
	case v.Missing():
	case v.IsString():
		w.text(v)
	case v.IsArray():
		v.EachElement(func(block rawjson.Value, _ int) bool {
			if w.blocksLeft--; w.blocksLeft < 0 {
				w.cut = true
				return false
			}
			w.block(block)
			return true
		})
	default:
		w.block(v)
	}
}

// contentBlock has the members of a content block that a transcript shows.
type contentBlock struct {
	kind                           string // its type, in camelCase
	text, thinking                 rawjson.Value
	id, name, parameters, intent   rawjson.Value // of a call
	data, url, media, source       rawjson.Value // of an image
	content, tool, answers, failed rawjson.Value // of a result
	to, inner                      rawjson.Value
}

// readBlock finds the members of a content block in one pass, in the spelling of either dialect.
func readBlock(block rawjson.Value) (b contentBlock) {
	block.EachMember(func(m rawjson.Member) bool {
		switch m.Name() {
		case "type":
			kind, _ := m.Value.Text()
			b.kind = rawjson.CamelCase(kind)
		case "text":
			b.text = m.Value
		case "thinking", "reasoning":
			b.thinking = m.Value
		case "id":
			b.id = m.Value
		case "name":
			b.name = m.Value
		case "arguments", "input", "args", "parameters":
			b.parameters = m.Value
		case "intent":
			b.intent = m.Value
		case "data":
			b.data = m.Value
		case "imageUrl", "url":
			b.url = m.Value
		case "mimeType", "mediaType":
			b.media = m.Value
		case "source":
			b.source = m.Value
		case "content":
			b.content = m.Value
		case "toolName":
			b.tool = m.Value
		case "toolCallId", "toolUseId":
			b.answers = m.Value
		case "isError":
			b.failed = m.Value
		case "to":
			b.to = m.Value
		case "block":
			b.inner = m.Value
		}
		return true
	})
	return b
}

// isText, isPicture and isCall know the block types of all dialects and providers.
func (b *contentBlock) isText() bool {
	return b.kind == "text" || b.kind == "inputText" || b.kind == "outputText"
}

func (b *contentBlock) isPicture() bool {
	return b.kind == "image" || b.kind == "imageUrl" || b.kind == "inputImage"
}

func (b *contentBlock) isCall() bool {
	return b.kind == "toolCall" || b.kind == "toolUse" || b.kind == "functionCall" || b.kind == "serverToolUse"
}

// block renders a content block.
func (w *renderer) block(v rawjson.Value) {
	if v.IsString() {
		w.text(v)
		return
	}
	b := readBlock(v)
	switch {
	case b.isText():
		w.text(b.text)
	case b.kind == "thinking" || b.kind == "reasoning" || b.kind == "redactedThinking":
		if len(b.thinking) == 0 {
			b.thinking = b.text
		}
		w.thinking(b.thinking)
	case b.isPicture():
		w.picture(&b)
	case b.isCall():
		w.toolCall(&b)
	case b.kind == "toolResult":
		w.result(&messageFields{tool: b.tool, call: b.answers, failed: b.failed, content: b.content})
	case b.kind == "fallback":
		w.note("Model after a fallback:", w.line(b.to.Member("model")))
	case b.kind == "anthropicServerTool":
		if inner := readBlock(b.inner); inner.isCall() {
			w.toolCall(&inner)
		} else {
			w.data(b.inner)
		}
	default:
		w.data(v)
	}
}

// thinking renders the model's thoughts as a block quote.
func (w *renderer) thinking(v rawjson.Value) {
	text := trimBlankLines(w.proseOf(v))
	if len(text) == 0 {
		return
	}
	w.begin()
	w.body = append(w.body, "> *Thinking*\n>\n"...)
	w.body = markdown.AppendQuote(w.body, text)
}

// picture renders an image: a link to its blob or, if the data is in the entry, a note and a link to the entry.
func (w *renderer) picture(b *contentBlock) {
	media, data := b.media, b.data
	if b.source.IsObject() {
		source := readBlock(b.source)
		b.url = source.url
		if media, data = source.media, source.data; len(media) == 0 {
			media = b.media
		}
	}
	if len(data) == 0 {
		data = b.url
	}
	if data.IsObject() {
		data = data.Member("url")
	}
	kind := w.line(media)
	if hash, ok := document.BlobHash(data); ok {
		w.image(kind, hash)
		return
	}
	w.note("An image in the entry,", kind, []byte(sizeText(len(data))))
	w.noteLink("the entry")
}
