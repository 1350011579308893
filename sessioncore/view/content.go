package view

import (
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// each adds the content of a message: a text, a list of blocks, or any other value.
func (b *builder) each(v rawjson.Value, add func(rawjson.Value)) {
	switch {
	case v.Missing():
	case v.IsArray():
		for element := range v.EachElement {
			b.blocksLeft--
			if b.blocksLeft < 0 {
				b.cut = true
				return
			}
			add(element)
		}
	default:
		add(v)
	}
}

// block adds a content block.
func (b *builder) block(v rawjson.Value) {
	if v.IsString() {
		b.prose(v)
		return
	}
	m := message.Read(v)
	switch m.Kind() {
	case message.TextKind:
		b.prose(m[message.Text])
	case message.ThinkingKind:
		b.thoughts(&m)
	case message.ImageKind:
		b.picture(&m)
	case message.CallKind:
		b.toolCall(&m)
	case message.ResultKind:
		b.result(&m, false)
	case message.FallbackKind:
		b.note("Model after a fallback:", b.word(m[message.To].Member("model")))
	case message.ServerKind:
		inner := message.Read(m[message.Block])
		if inner.Kind() == message.CallKind {
			b.toolCall(&inner)
		} else {
			b.data(m[message.Block])
		}
	default:
		b.data(v)
	}
}

// thoughts adds the model's thoughts.
func (b *builder) thoughts(m *message.Members) {
	v := m[message.Thinking]
	if len(v) == 0 {
		v = m[message.Text]
	}
	text := trimBlankLines(b.proseOf(v))
	if len(text) > 0 {
		b.blocks.body = append(b.blocks.body, block{kind: thoughtText, text: text})
	}
}

// picture adds an image of the blob store or, if the data is in the entry, a note with a link to the
// entry and the data.
func (b *builder) picture(m *message.Members) {
	media := m[message.MediaType]
	data := m[message.Data]
	url := m[message.URL]
	if m[message.Source].IsObject() {
		source := message.Read(m[message.Source])
		data = source[message.Data]
		url = source[message.URL]
		if len(source[message.MediaType]) > 0 {
			media = source[message.MediaType]
		}
	}
	if len(data) == 0 {
		data = url
	}
	if data.IsObject() {
		data = data.Member("url")
	}
	kind := b.word(media)
	hash, ok := document.BlobHash(data)
	if ok {
		b.line(paragraphLine, span{style: imageStyle, text: "Image: " + kind, target: hash})
		return
	}
	b.note("An image in the entry,", kind, sizeText(len(data)))
	b.link("the entry")
	last := &b.blocks.body[len(b.blocks.body)-1]
	last.kind = pictureLine
	last.text = data
}
