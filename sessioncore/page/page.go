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

// head is what precedes the transcript; its argument is the title. The policy lets a browser load nothing at all, were
// there anything to load.
const head = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 46rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
h2 { margin-top: 2.5rem; padding-top: .75rem; border-top: 1px solid rgba(128, 128, 128, .5); font-size: 1rem; }
code { font: .875em/1.4 ui-monospace, monospace; }
pre { padding: .75rem; overflow-x: auto; border-radius: .375rem; background: rgba(128, 128, 128, .15); overflow-wrap: normal;
  font: .8125rem/1.45 ui-monospace, monospace; tab-size: 4; }
pre code { font: inherit; }
blockquote { margin: 1rem 0; padding-left: 1rem; border-left: 3px solid rgba(128, 128, 128, .5); opacity: .85; }
img { max-width: 100%%; height: auto; }
table { display: block; overflow-x: auto; border-collapse: collapse; }
th, td { padding: .25rem .5rem; border: 1px solid rgba(128, 128, 128, .5); text-align: left; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: 8pt; }
  h1, h2 { break-after: avoid; }
  img { break-inside: avoid; }
}
</style>
</head>
<body>
`

// foot is what follows it.
const foot = "</body>\n</html>\n"
