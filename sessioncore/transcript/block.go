package transcript

import (
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// image writes a link to a blob.
func (w *renderer) image(what []byte, hash string) {
	w.begin()
	w.body = append(markdown.AppendText(append(w.body, "![Image: "...), what), "]("...)
	if w.measuring {
		w.size.blobs++
	} else {
		w.body = append(w.body, w.links.Blobs...)
	}
	w.body = append(append(w.body, hash...), ")\n"...)
}

// content renders the content of a message: a text, a list of blocks, or any other value.
func (w *renderer) content(v rawjson.Value) { w.blocks(v, false) }

// blocks is content, or renders the content of a result.
func (w *renderer) blocks(v rawjson.Value, ofResult bool) {
	block := w.block
	if ofResult {
		block = w.resultBlock
	}
	switch {
	case v.Missing():
	case v.IsArray():
		for element := range v.EachElement {
			if w.blocksLeft--; w.blocksLeft < 0 || ofResult && w.outputLeft == 0 {
				w.cut = true
				return
			}
			block(element)
		}
	default:
		block(v)
	}
}

// block renders a content block.
func (w *renderer) block(v rawjson.Value) {
	if v.IsString() {
		w.text(v)
		return
	}
	b := message.Read(v)
	switch b.Kind() {
	case message.TextKind:
		w.text(b[message.Text])
	case message.ThinkingKind:
		w.thinking(&b)
	case message.ImageKind:
		w.picture(&b)
	case message.CallKind:
		w.toolCall(&b)
	case message.ResultKind:
		w.result(&b, false)
	case message.FallbackKind:
		w.note("Model after a fallback:", w.line(b[message.To].Member("model")))
	case message.ServerKind:
		if inner := message.Read(b[message.Block]); inner.Kind() == message.CallKind {
			w.toolCall(&inner)
		} else {
			w.data(b[message.Block])
		}
	default:
		w.data(v)
	}
}

// thinking renders the model's thoughts as a block quote.
func (w *renderer) thinking(b *message.Members) {
	v := b[message.Thinking]
	if len(v) == 0 {
		v = b[message.Text]
	}
	text := trimBlankLines(w.proseOf(v))
	if len(text) == 0 {
		return
	}
	w.begin()
	w.body = append(w.body, "> *Thinking*\n>\n"...)
	w.body = markdown.AppendQuote(w.body, text)
}

// picture renders an image: a link to its blob or, if the data is in the entry, a note and a link to the entry.
func (w *renderer) picture(b *message.Members) {
	media, data, url := b[message.MediaType], b[message.Data], b[message.URL]
	if b[message.Source].IsObject() {
		source := message.Read(b[message.Source])
		data, url = source[message.Data], source[message.URL]
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
	kind := w.line(media)
	if hash, ok := document.BlobHash(data); ok {
		w.image(kind, hash)
		return
	}
	w.note("An image in the entry,", kind, []byte(sizeText(len(data))))
	w.noteLink("the entry")
}
