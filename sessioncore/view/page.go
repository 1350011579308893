package view

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
)

// Blobs opens a blob by the SHA-256 of its content, in lower-case hex. The error is told on the page.
type Blobs func(hash string) (io.ReadCloser, error)

// Page writes the branch that ends in leaf (NoEntry: before the first entry) as one self-contained HTML
// page: no scripts, nothing that is loaded from elsewhere, its images inside as data. The entries are
// written one by one, so memory does not grow with them, but for a line in the table of contents for each
// prompt.
//
// The Markdown in it is others': raw HTML is shown as text, an image that is not in the blob store becomes
// a link, and links lead to the web or nowhere.
func Page(ctx context.Context, w io.Writer, s *sessioncore.Snapshot, leaf sessioncore.Entry, blobs Blobs) error {
	t, err := newTranscript(ctx, s, leaf, Links{Blobs: "blobs/"})
	if err != nil {
		return err
	}
	p := newPage(w, t.head, blobs)
	for _, shown := range t.entries {
		blocks, err := t.blocksOf(shown)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		p.entry(s.Name(shown.entry), shown.begins, blocks)
		if p.err != nil {
			return p.err
		}
	}
	return p.end()
}

// pageHTML surrounds the transcript. Its policy lets a browser load nothing at all, were there anything.
//
//go:embed page.html
var pageHTML string

var pageBegin, pageEnd, _ = strings.Cut(pageHTML, "{content}\n")

// newMarkdown returns a renderer of Markdown in which raw HTML is text.
func newMarkdown(p *page) goldmark.Markdown {
	isHTML := func(v util.PrioritizedValue) bool {
		return v.Value == parser.NewHTMLBlockParser() || v.Value == parser.NewRawHTMLParser()
	}
	blocks := slices.DeleteFunc(parser.DefaultBlockParsers(), isHTML)
	inline := slices.DeleteFunc(parser.DefaultInlineParsers(), isHTML)
	return goldmark.New(
		goldmark.WithParser(parser.NewParser(parser.WithBlockParsers(blocks...), parser.WithInlineParsers(inline...),
			parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...))),
		goldmark.WithExtensions(extension.Table, extension.Strikethrough),
		goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(p, firstPriority))),
	)
}

// firstPriority puts our renderers before goldmark's, which have 1000 and its extensions 500.
const firstPriority = 100

// page is a page that is being written.
type page struct {
	out      *bufio.Writer // an error of which comes back with Flush
	blobs    Blobs
	markdown goldmark.Markdown
	prompts  []prompt
	err      error // the first
}

// prompt is a line of the table of contents.
type prompt struct{ name, text string }

const (
	// maxPrompts is how many lines the table of contents has at most: it is written last, so it is held until then.
	maxPrompts = 10_000
	// maxPrompt is how many characters of a prompt it shows.
	maxPrompt = 80
)

// newPage begins a page.
func newPage(w io.Writer, head []block, blobs Blobs) *page {
	p := &page{out: bufio.NewWriter(w), blobs: blobs}
	p.markdown = newMarkdown(p)
	title := "Session"
	if len(head) > 0 {
		title = head[0].line[0].text
	}
	p.write(strings.Replace(pageBegin, "{title}", html.EscapeString(title), 1))
	for i := range head {
		p.block(&head[i])
	}
	return p
}

// write writes HTML.
func (p *page) write(parts ...string) {
	for _, part := range parts {
		_, _ = p.out.WriteString(part)
	}
}

// entry writes an entry, with an anchor. The result of a tool is folded.
func (p *page) entry(name string, begins bool, blocks *entryBlocks) {
	p.write(`<div id="`, html.EscapeString(name), "\">\n")
	p.block(blocks.opening(begins))
	body, first := blocks.body, ""
	isResult := blocks.flags&joinsTurn != 0
	if isResult {
		p.write("<details>\n<summary>")
		p.line(&body[0])
		p.write("</summary>\n")
		body = body[1:]
	}
	for i := range body {
		if text := p.block(&body[i]); i == 0 {
			first = text
		}
	}
	if begins && blocks.heading.line[0].text == userHeading && len(p.prompts) < maxPrompts {
		p.prompts = append(p.prompts, prompt{name, cmp.Or(names.FirstWords(first, maxPrompt), "…")})
	}
	if isResult {
		p.write("</details>\n")
	}
	p.write("</div>\n")
}

// lineTags are the elements of lines.
var lineTags = [...][2]string{
	titleLine: {"<h1>", "</h1>\n"}, headingLine: {"<h2>", "</h2>\n"}, namingLine: {"<p><em>", "</em></p>\n"},
	noteLine: {"<p>", "</p>\n"}, callLine: {"<p>", "</p>\n"}, resultLine: {"<p>", "</p>\n"},
	paragraphLine: {"<p>", "</p>\n"},
}

// block writes a block, and returns the beginning of its text.
func (p *page) block(b *block) (text string) {
	switch b.kind {
	case proseText, thoughtText:
		return p.convert(bareWriter.append(nil, *b))
	case codeText:
		p.code(b.info == "diff", b.text)
		return ""
	}
	if len(b.line) > 0 {
		p.write(lineTags[b.kind][0])
		text = p.line(b)
		p.write(lineTags[b.kind][1])
	}
	return text
}

// spanTags are the elements of spans.
var spanTags = [...][2]string{
	emphasisStyle: {"<em>", "</em>"}, strongStyle: {"<strong>", "</strong>"}, codeStyle: {"<code>", "</code>"},
	strongCodeStyle: {"<strong><code>", "</code></strong>"}, imageStyle: {},
}

// line writes the spans of a line, and returns their text. The name of the entry becomes a link to itself.
func (p *page) line(b *block) (text string) {
	for i, s := range b.line {
		if i > 0 {
			p.write(separators[b.kind])
			text += separators[b.kind]
		}
		text += s.text
		tags, shown := spanTags[s.style], string(util.EscapeHTML([]byte(s.text)))
		switch {
		case s.style == imageStyle:
			p.embed(s.target, html.EscapeString(strings.TrimSpace(s.text)))
			continue
		case s.style != nameStyle:
		case isPlainName(s.text):
			tags = [2]string{`<a href="#` + s.text + `">`, "</a>"}
		default:
			tags, shown = spanTags[codeStyle], string(util.EscapeHTML(visibleName(s.text)))
		}
		p.write(tags[0], shown, tags[1])
	}
	return text
}

// maxPiece is the longest piece of Markdown that is rendered, in bytes. Nobody writes so much.
const maxPiece = 1 << 20

// convert writes Markdown, and returns the text of its first block. Markdown that no person has written
// is shown as it is: brackets without end take a parser the square of the time.
func (p *page) convert(source []byte) (first string) {
	if len(source) > maxPiece || absurd(source) {
		p.write("<pre>", html.EscapeString(string(source)), "</pre>\n")
		return string(source[:min(len(source), maxPiece)])
	}
	doc := p.markdown.Parser().Parse(text.NewReader(source))
	p.err = cmp.Or(p.err, p.markdown.Renderer().Render(p.out, source, doc))
	return plainText(doc.FirstChild(), source)
}

// end writes the table of contents, which is shown first, and ends the page.
func (p *page) end() error {
	p.write("</main>\n")
	if len(p.prompts) > 0 {
		p.write("<nav>\n<ol>\n")
		for _, it := range p.prompts {
			p.write(`<li><a href="#`, html.EscapeString(it.name), `">`, html.EscapeString(it.text), "</a></li>\n")
		}
		p.write("</ol>\n</nav>\n")
	}
	p.write(pageEnd)
	return cmp.Or(p.err, p.out.Flush())
}

// maxBrackets is how many brackets and emphasis marks may open in a paragraph.
const maxBrackets = 5000

// absurd reports whether a piece is nested as no person does it. Quotes and lists in a transcript are
// bounded (package markdown).
func absurd(piece []byte) bool {
	open := 0
	for line := range bytes.Lines(piece) {
		if len(bytes.TrimSpace(line)) == 0 {
			open = 0
		}
		for _, sign := range []string{"[", "*", "_", "`"} {
			open += bytes.Count(line, []byte(sign))
		}
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
