package view

import (
	"bufio"
	"bytes"
	"html"

	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"

	"sessionfs/sessioncore/internal/markdown"
)

// markup is HTML. Constants are markup; others' text becomes it by escaped alone, which the compiler
// checks, as no string is assigned to it.
type markup string

// escaped writes text as HTML, in an element or in the quotes of an attribute: with its control
// characters and those for the direction of writing made visible.
func escaped(text string) markup {
	text = string(visibleName(text))
	return markup(html.EscapeString(text))
}

// markdownText writes the texts in Markdown as escaped does.
type markdownText struct{}

var _ goldmarkhtml.Writer = markdownText{}

// Write implements goldmarkhtml.Writer: it resolves references, such as &#x202e;, and backslashes.
func (markdownText) Write(w util.BufWriter, source []byte) {
	if bytes.IndexByte(source, '&') < 0 {
		goldmarkhtml.DefaultWriter.Write(w, markdown.Visible(source))
		return
	}
	var resolved bytes.Buffer
	buffered := bufio.NewWriterSize(&resolved, len(source))
	goldmarkhtml.DefaultWriter.Write(buffered, source)
	_ = buffered.Flush() // to memory
	_, _ = w.Write(markdown.Visible(resolved.Bytes()))
}

// RawWrite implements goldmarkhtml.Writer.
func (markdownText) RawWrite(w util.BufWriter, source []byte) {
	goldmarkhtml.DefaultWriter.RawWrite(w, markdown.Visible(source))
}

// SecureWrite implements goldmarkhtml.Writer. It is for raw HTML, which a page has none of.
func (m markdownText) SecureWrite(w util.BufWriter, source []byte) { m.RawWrite(w, source) }
