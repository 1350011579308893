package page

import (
	"bufio"
	"cmp"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Blobs opens a blob by the SHA-256 of its content, in lower-case hex. The error is told on the page.
type Blobs func(hash string) (io.ReadCloser, error)

// Write writes the page of a transcript.
func Write(w io.Writer, transcript io.Reader, blobs Blobs) error {
	out := bufio.NewWriter(w)
	blocks := slices.DeleteFunc(parser.DefaultBlockParsers(), func(v util.PrioritizedValue) bool { return v.Value == parser.NewHTMLBlockParser() })
	inline := slices.DeleteFunc(parser.DefaultInlineParsers(), func(v util.PrioritizedValue) bool { return v.Value == parser.NewRawHTMLParser() })
	markdown := goldmark.New( // to which raw HTML is text
		goldmark.WithParser(parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inline...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&harmless{blobs}, firstPriority))),
	)
	pieces := newSplitter(transcript)
	first := true
	for {
		piece, err := pieces.next()
		if err != nil && err != io.EOF {
			return err
		}
		if first {
			if _, err := fmt.Fprintf(out, head, html.EscapeString(titleOf(markdown, piece))); err != nil {
				return err
			}
			first = false
		}
		if err == io.EOF {
			break
		}
		if err := writePiece(out, markdown, piece); err != nil {
			return err
		}
	}
	if _, err := out.WriteString(foot); err != nil {
		return err
	}
	return out.Flush()
}

// firstPriority puts our renderers before goldmark's, which have 1000 and its extensions 500.
const firstPriority = 100

// writePiece renders a piece of Markdown. One that no person has written is shown as it is: brackets without end
// take a parser the square of the time.
func writePiece(out *bufio.Writer, markdown goldmark.Markdown, piece []byte) error {
	if absurd(piece) {
		_, err := fmt.Fprintf(out, "<pre>%s</pre>\n", html.EscapeString(string(piece)))
		return err
	}
	return markdown.Convert(piece, out)
}

// titleOf returns the text of the first heading of a piece.
func titleOf(markdown goldmark.Markdown, piece []byte) string {
	line, _, _ := strings.Cut(strings.TrimLeft(string(piece), "\n"), "\n")
	source := []byte(line)
	title := plainText(markdown.Parser().Parse(text.NewReader(source)), source)
	return cmp.Or(title, "Session")
}
