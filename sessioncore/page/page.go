package page

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"html"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/transcript"
)

// Blobs opens a blob by the SHA-256 of its content, in lower-case hex. The error is told on the page.
type Blobs func(hash string) (io.ReadCloser, error)

// Write writes the page of a transcript: of what precedes its first turn, and of its parts.
func Write(w io.Writer, head []byte, parts iter.Seq2[transcript.Part, error], blobs Blobs) error {
	p := page{out: bufio.NewWriter(w), markdown: newMarkdown(blobs)}
	title := plainText(p.markdown.Parser().Parse(text.NewReader(head)).FirstChild(), head)
	fmt.Fprintf(p.out, begin, html.EscapeString(cmp.Or(title, "Session"))) // errors come back with Flush
	if _, err := p.convert(head); err != nil {
		return err
	}
	for part, err := range parts {
		if err == nil {
			err = p.part(&part)
		}
		if err != nil {
			return err
		}
	}
	p.contents()
	p.out.WriteString(end)
	return p.out.Flush()
}

// newMarkdown returns what renders Markdown in which raw HTML is text.
func newMarkdown(blobs Blobs) goldmark.Markdown {
	blocks := slices.DeleteFunc(parser.DefaultBlockParsers(), func(v util.PrioritizedValue) bool { return v.Value == parser.NewHTMLBlockParser() })
	inline := slices.DeleteFunc(parser.DefaultInlineParsers(), func(v util.PrioritizedValue) bool { return v.Value == parser.NewRawHTMLParser() })
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inline...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(&harmless{blobs}, firstPriority))),
	)
}

// firstPriority puts our renderers before goldmark's, which have 1000 and its extensions 500.
const firstPriority = 100

// page is a page that is being written.
type page struct {
	out      *bufio.Writer
	markdown goldmark.Markdown
	prompts  []prompt
}

// prompt is a line of the table of contents.
type prompt struct{ name, text string }

const (
	// maxPrompts is how many lines the table of contents has at most: it is written last, so it is held until then.
	maxPrompts = 10_000
	// maxPrompt is how many characters of a prompt it shows.
	maxPrompt = 80
)

// part writes an entry, with an anchor. The result of a tool is folded.
func (p *page) part(part *transcript.Part) error {
	fmt.Fprintf(p.out, "<div id=\"%s\">\n", html.EscapeString(part.Name))
	opening, err := p.named(part.Opening, part.Name)
	if err != nil {
		return err
	}
	p.out.Write(opening)
	body := part.Body
	if part.Result {
		line, rest, _ := bytes.Cut(bytes.TrimLeft(body, "\n"), []byte("\n"))
		summary, err := p.named(line, part.Name)
		if err != nil {
			return err
		}
		summary = bytes.TrimSuffix(bytes.TrimPrefix(summary, []byte("<p>")), []byte("</p>\n"))
		fmt.Fprintf(p.out, "<details>\n<summary>%s</summary>\n", summary)
		body = rest
	}
	said, err := p.convert(body)
	if part.Turn == "User" && len(p.prompts) < maxPrompts {
		p.prompts = append(p.prompts, prompt{part.Name, cmp.Or(names.FirstWords(said, maxPrompt), "…")})
	}
	if part.Result {
		p.out.WriteString("</details>\n")
	}
	p.out.WriteString("</div>\n")
	return err
}

// named returns a line that names an entry. The name becomes a link to itself.
func (p *page) named(line []byte, name string) ([]byte, error) {
	var out bytes.Buffer
	err := p.markdown.Convert(line, &out)
	if html.EscapeString(name) != name {
		return out.Bytes(), err
	}
	const before = " · "
	linked := before + `<a href="#` + name + `">` + name + `</a>`
	return bytes.Replace(out.Bytes(), []byte(before+name), []byte(linked), 1), err
}

// maxPiece is the longest piece of Markdown that is rendered, in bytes. Nobody writes so much.
const maxPiece = 1 << 20

// convert writes a piece of Markdown, and returns the text of its first block. One that no person has written is shown as it
// is: brackets without end take a parser the square of the time.
func (p *page) convert(piece []byte) (first string, err error) {
	if len(piece) > maxPiece || absurd(piece) {
		fmt.Fprintf(p.out, "<pre>%s</pre>\n", html.EscapeString(string(piece)))
		return string(piece[:min(len(piece), maxPiece)]), nil
	}
	doc := p.markdown.Parser().Parse(text.NewReader(piece))
	return plainText(doc.FirstChild(), piece), p.markdown.Renderer().Render(p.out, piece, doc)
}

// contents writes the table of contents.
func (p *page) contents() {
	p.out.WriteString("</main>\n")
	if len(p.prompts) == 0 {
		return
	}
	p.out.WriteString("<nav>\n<ol>\n")
	for _, it := range p.prompts {
		fmt.Fprintf(p.out, "<li><a href=\"#%s\">%s</a></li>\n", html.EscapeString(it.name), html.EscapeString(it.text))
	}
	p.out.WriteString("</ol>\n</nav>\n")
}

// maxBrackets is how many brackets and emphasis marks may open in a paragraph.
const maxBrackets = 5000

// absurd reports whether a piece has nested what no person nests. Quotes and lists in a transcript are bounded (package
// markdown).
func absurd(piece []byte) bool {
	open := 0
	for line := range bytes.Lines(piece) {
		if len(bytes.TrimSpace(line)) == 0 {
			open = 0
		}
		open += bytes.Count(line, []byte("[")) + bytes.Count(line, []byte("*")) + bytes.Count(line, []byte("_")) + bytes.Count(line, []byte("`"))
		if open > maxBrackets {
			return true
		}
	}
	return false
}

// plainText returns the text of a block; n may be nil.
func plainText(n ast.Node, source []byte) string {
	if n == nil {
		return ""
	}
	var out bytes.Buffer
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(util.UnescapePunctuations(t.Value(source)))
			if t.SoftLineBreak() || t.HardLineBreak() {
				out.WriteByte(' ')
			}
		}
		if n.Type() == ast.TypeBlock {
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(out.String())
}
