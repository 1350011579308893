package sessioncore

// content renders what a message holds: a text, a list of blocks, or whatever else is there.
func (w *transcriptWriter) content(v value) {
	switch {
	case v.missing():
	case v.isString():
		w.text(v)
	case v.isArray():
		v.eachElement(func(block value, _ int) bool {
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

// contentBlock are the members of a content block that a transcript shows.
type contentBlock struct {
	kind                           string // its type, in camelCase
	text, thinking                 value
	id, name, parameters, intent   value // of a call
	data, url, media, source       value // of a picture
	content, tool, answers, failed value // of a result
	to, inner                      value
}

// readBlock finds the members of a content block in one pass, in either spelling.
func readBlock(block value) (b contentBlock) {
	block.eachMember(func(m member) bool {
		switch m.name() {
		case "type":
			kind, _ := m.value.text()
			b.kind = inCamelCase(kind)
		case "text":
			b.text = m.value
		case "thinking", "reasoning":
			b.thinking = m.value
		case "id":
			b.id = m.value
		case "name":
			b.name = m.value
		case "arguments", "input", "args", "parameters":
			b.parameters = m.value
		case "intent":
			b.intent = m.value
		case "data":
			b.data = m.value
		case "imageUrl", "url":
			b.url = m.value
		case "mimeType", "mediaType":
			b.media = m.value
		case "source":
			b.source = m.value
		case "content":
			b.content = m.value
		case "toolName":
			b.tool = m.value
		case "toolCallId", "toolUseId":
			b.answers = m.value
		case "isError":
			b.failed = m.value
		case "to":
			b.to = m.value
		case "block":
			b.inner = m.value
		}
		return true
	})
	return b
}

// The kinds of blocks, of all dialects and providers.
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
func (w *transcriptWriter) block(v value) {
	if v.isString() {
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
		w.note("Model after a fallback:", w.line(b.to.member("model")))
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

// thinking renders what the model thought, as a quote.
func (w *transcriptWriter) thinking(v value) {
	text := trimBlankLines(w.proseOf(v))
	if len(text) == 0 {
		return
	}
	w.begin()
	w.body = append(w.body, "> *Thinking*\n>\n"...)
	w.body = appendMarkdownQuote(w.body, text)
}

// picture renders an image: a link to its blob, or in words what there is in the entry.
func (w *transcriptWriter) picture(b *contentBlock) {
	media, data := b.media, b.data
	if b.source.isObject() {
		source := readBlock(b.source)
		b.url = source.url
		if media, data = source.media, source.data; len(media) == 0 {
			media = b.media
		}
	}
	if len(data) == 0 {
		data = b.url
	}
	if data.isObject() {
		data = data.member("url")
	}
	kind := w.line(media)
	if hash, ok := blobHash(data); ok {
		w.image(kind, hash)
		return
	}
	w.note("An image in the entry,", kind, []byte(sizeText(len(data))))
	w.noteLink("the entry")
}
