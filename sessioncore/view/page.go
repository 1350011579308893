package view

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
)

// BlobOpener opens a blob by the SHA-256 of its content, in lower-case hex. The error is told on the
// page.
type BlobOpener func(hash string) (io.ReadCloser, error)

// Subject is the subject of a page: a session, and facts of it for the header, "" where they are
// not known.
type Subject struct {
	Session *sessioncore.Snapshot
	End     sessioncore.Entry // of the current branch; NoEntry: before the first entry
	Alone   bool              // only that branch is shown
	Blobs   BlobOpener        // nil for a page without images, and without lines, which may have them
	Index   string            // the first page of the site, "" where there is none

	Agent, Model, Tokens, Cost string
}

// Page writes a session as one self-contained HTML page: the tree of its entries, the current
// branch, and of each other branch the entries that it does not share. Its only script is its own,
// nothing is loaded from elsewhere, and images and the session's JSON Lines are inside as data. Several parts of the page are
// made at once and written in order, so memory does not grow with the texts.
//
// The Markdown in it is others': raw HTML is shown as text, an image that is not in the blob store
// becomes a link, and links lead to the web or nowhere.
func Page(ctx context.Context, w io.Writer, of Subject) error {
	s := of.Session
	size := &sizedWriter{Writer: w}
	p := newPage(size, s, of.Blobs)
	p.alone = of.Alone
	var path []sessioncore.Entry
	if of.End != sessioncore.NoEntry {
		path = s.Path(of.End)
	}
	err := p.header(&of, path)
	if err != nil {
		return err
	}
	err = p.parts(ctx, p.plan(path))
	if err != nil {
		return err
	}
	for e := range p.written { // such as moves of the leaf
		if !p.written[e] && !of.Alone {
			p.anchor(sessioncore.Entry(e))
		}
	}
	p.write("</main>\n")
	if of.Blobs != nil { // else it is masked: its reader sees all that is in it
		err := p.download(ctx, path, size.size)
		if err != nil {
			return err
		}
	}
	return p.end()
}

// pageWriter is a page that is being written.
type pageWriter struct {
	htmlWriter
	blobs    BlobOpener
	markdown goldmark.Markdown
	s        *sessioncore.Snapshot
	entries  *transcript
	results  *transcript                  // makes the entries of results while the entry of their message is in use
	alone    bool                         // one branch is shown
	written  []bool                       // by entry; each is written by one copy
	marks    map[sessioncore.Entry]string // of the ends of branches
	outlined chan struct{}                // closed when marks is whole
	source   []byte                       // the Markdown that is written
	err      error                        // the first
}

// newPage returns a page of a session that is written to w.
func newPage(w io.Writer, s *sessioncore.Snapshot, blobs BlobOpener) *pageWriter {
	p := &pageWriter{
		blobs:    blobs,
		s:        s,
		written:  make([]bool, s.Len()),
		marks:    map[sessioncore.Entry]string{},
		outlined: make(chan struct{}),
	}
	return p.copy(w)
}

// copy returns a page that writes other entries of the same page to w.
func (p *pageWriter) copy(w io.Writer) *pageWriter {
	other := *p
	other.htmlWriter = htmlWriter{bufio.NewWriter(w)}
	other.entries = emptyTranscript(p.s, bareWriter.links)
	other.results = emptyTranscript(p.s, bareWriter.links)
	other.source = nil
	other.markdown = newMarkdown(&other)
	return &other
}

// newMarkdown returns a renderer of Markdown that shows raw HTML as text.
func newMarkdown(p *pageWriter) goldmark.Markdown {
	isHTML := func(v util.PrioritizedValue) bool {
		return v.Value == parser.NewHTMLBlockParser() || v.Value == parser.NewRawHTMLParser()
	}
	blocks := slices.DeleteFunc(parser.DefaultBlockParsers(), isHTML)
	inline := slices.DeleteFunc(parser.DefaultInlineParsers(), isHTML)
	parsers := parser.NewParser(
		parser.WithBlockParsers(blocks...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	table := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))
	return goldmark.New(
		goldmark.WithParser(parsers),
		goldmark.WithExtensions(table, extension.Strikethrough),
		goldmark.WithRendererOptions(
			renderer.WithNodeRenderers(util.Prioritized(p, firstPriority)),
			goldmarkhtml.WithWriter(markdownText{}),
		),
	)
}

// firstPriority puts our renderers before goldmark's, which have 1000 and its extensions 500.
const firstPriority = 100

// header writes all that is before the list of entries.
func (p *pageWriter) header(of *Subject, path []sessioncore.Entry) error {
	for _, e := range path {
		p.entries.entries = append(p.entries.entries, shownEntry{entry: e})
	}
	head, err := p.entries.headOf(p.s, false)
	if err != nil {
		return err
	}
	p.entries.entries = nil
	title := "Session"
	if len(head) > 0 {
		title = head[0].line[0].text
	}
	var above markup
	if of.Index != "" {
		above = `<p><a href="` + escaped(of.Index) + "\">All sessions</a></p>\n"
	}
	p.begin(above, title)
	for i := range head[min(1, len(head)):] {
		p.block(&head[i+1])
	}
	length, turns := extent(of, path)
	p.facts(
		[2]string{"Agent", of.Agent},
		[2]string{"Model", of.Model},
		[2]string{"Duration", length},
		[2]string{"Turns", strconv.Itoa(turns)},
		[2]string{"Tokens", of.Tokens},
		[2]string{"Cost", of.Cost},
	)
	p.write("</header>\n", markup(pageTools))
	return nil
}

// nameOf returns the name of an entry as an attribute id, and as a link to it.
func (p *pageWriter) nameOf(e sessioncore.Entry) (id, href markup) {
	name := p.s.Name(e)
	return escaped(name), `"#` + escaped(url.PathEscape(name)) + `"`
}

// outline writes the tree as report.Log draws it, each entry a link; of one branch alone its
// entries.
func (p *pageWriter) outline(ctx context.Context, path []sessioncore.Entry) error {
	defer close(p.outlined)
	on := map[sessioncore.Entry]bool{}
	for _, e := range path {
		on[e] = p.alone
	}
	p.write("<nav aria-label=\"Entries\">\n<ul>\n")
	err := report.Log(ctx, p.s, false, func(l *report.LogLine) error {
		switch {
		case p.alone && !on[l.Entry]:
			return nil
		case p.alone:
			l.Graph = "*"
		}
		p.outlineLine(l)
		return nil
	})
	p.write("</ul>\n</nav>\n</div>\n<main id=\"/main\">\n")
	return err
}

// outlineLine writes a line of the tree.
func (p *pageWriter) outlineLine(l *report.LogLine) {
	graph := `<span class="g" aria-hidden="true">` + escaped(l.Graph) + "</span>"
	if l.Entry == sessioncore.NoEntry {
		p.write("<li class=\"join\">", graph, "</li>\n")
		return
	}
	for i, mark := range l.Marks {
		l.Marks[i] = names.FirstWords(mark, maxWord)
	}
	marks := strings.Join(l.Marks, ", ")
	var classes []string
	if p.s.IsRequest(l.Entry) {
		classes = append(classes, "user")
	}
	if l.Call {
		classes = append(classes, "tool")
	}
	id, _ := p.s.ID(l.Entry)
	if p.s.LabelOf(id) != "" {
		classes = append(classes, "labelled")
	} else if marks != "" {
		p.marks[l.Entry] = marks
	}
	_, href := p.nameOf(l.Entry)
	p.write(`<li class="`, escaped(strings.Join(classes, " ")), `">`, graph)
	p.write("<a href=", href, ` title="`, escaped(l.ID), `">`)
	p.write("<b>", escaped(l.What), "</b> ")
	if marks != "" {
		p.write("<i>", escaped(marks), "</i> ")
	}
	said := names.FirstWords(l.Said, maxFirstWords)
	p.write(escaped(said), "</a></li>\n")
}

// callOutcome is the result of a call, as it stands within the call.
type callOutcome struct {
	entry sessioncore.Entry
	call  string // its id
	body  []block
}

// outcomesIn returns the results of tools at the beginning of a path, at most maxCalls.
func (p *pageWriter) outcomesIn(path []sessioncore.Entry) (list []callOutcome, err error) {
	room := maxHeldPictures
	for _, e := range path {
		if p.s.Kind(e) != sessioncore.TypeMessage {
			continue
		}
		if p.s.Role(e) != sessioncore.RoleToolResult || len(list) == maxCalls {
			break
		}
		n := len(list)
		if n > 0 { // the next blocks take its place
			list[n-1].body = held(list[n-1].body, &room)
		}
		blocks, err := p.results.blocksOf(e)
		if err != nil {
			return nil, err
		}
		body := blocks.body
		if len(body) == 0 {
			continue
		}
		isOfCall := func(s span) bool { return s.style == codeStyle } // its tool and argument
		body[0].line = slices.DeleteFunc(body[0].line, isOfCall)
		m := message.Read(p.s.Message(e, p.results.text))
		call, _ := m[message.CallID].Text()
		list = append(list, callOutcome{
			entry: e,
			call:  call,
			body:  body,
		})
	}
	return list, nil
}

// entry writes an entry, with an anchor.
func (p *pageWriter) entry(e sessioncore.Entry, begins bool, blocks *entryBlocks, outcomes []callOutcome) {
	p.written[e] = true
	id, _ := p.nameOf(e)
	body := blocks.body
	if len(body) == 0 {
		p.anchor(e)
		return
	}
	own, _ := p.s.ID(e)
	label := p.s.LabelOf(own)
	p.write(`<article id="`, id, `" class="`, classesOf(blocks, begins, label), "\">\n")
	if label != "" {
		p.write(`<p class="label">`, escaped(names.FirstWords(label, maxWord)), "</p>\n")
	}
	p.block(blocks.opening(begins))
	if blocks.flags&joinsTurn != 0 {
		p.fold("result", &body[0], body[1:])
		body = nil
	}
	for i := 0; i < len(body); i++ {
		b := &body[i]
		parts := body[i+1 : i+1+body[i].parts]
		switch i += len(parts); b.kind {
		case callLine:
			p.call(b, parts, outcomes)
		case resultLine:
			p.fold("result", b, parts)
		default:
			p.block(b)
		}
	}
	p.links(e)
	p.write("</article>\n")
}

// anchor writes an entry that shows nothing.
func (p *pageWriter) anchor(e sessioncore.Entry) {
	id, _ := p.nameOf(e)
	p.write(`<div id="`, id, "\"></div>\n")
}

// classesOf returns the classes of an entry, for its colours and for filters.
func classesOf(blocks *entryBlocks, begins bool, label string) markup {
	classes := markup("entry")
	has := func(kinds ...kind) bool {
		return slices.ContainsFunc(blocks.body, func(b block) bool {
			return slices.Contains(kinds, b.kind)
		})
	}
	switch {
	case blocks.flags&fromUser != 0:
		classes = "user"
	case blocks.flags&joinsTurn != 0, has(callLine, resultLine) && !has(proseText):
		classes = "tool"
	case blocks.flags&inTurn == 0:
		classes = "note"
	}
	if begins {
		classes += " begins"
	}
	if label != "" {
		classes += " labelled"
	}
	return classes
}

// maxForks is how many branches an entry has links to.
const maxForks = 20

// links writes links to the branches that begin at an entry.
func (p *pageWriter) links(e sessioncore.Entry) {
	tree := p.s.Tree()
	if p.alone || !tree.Has(e) || len(tree.Children(e)) < 2 {
		return
	}
	p.write(`<p class="fork">Branches from here:`)
	for i, kid := range tree.Children(e) {
		if i == maxForks {
			p.write(" …")
			break
		}
		_, href := p.nameOf(kid)
		name := names.FirstWords(p.s.Name(kid), maxWord)
		p.write(" <a href=", href, ">", escaped(name), "</a>")
	}
	p.write("</p>\n")
}

// call writes a call as one line that unfolds, with its result.
func (p *pageWriter) call(b *block, parts []block, outcomes []callOutcome) {
	at := slices.IndexFunc(outcomes, func(o callOutcome) bool {
		return o.call == b.call && b.call != "" && !p.written[o.entry]
	})
	class := markup("call")
	state := ""
	switch {
	case at < 0:
		state = "no result"
	case outcomes[at].body[0].failed:
		class = "call failed"
		state = "failed"
	}
	line := block{kind: resultLine, line: b.line[:1:1]}
	line.add(codeOf(b.info), span{style: emphasisStyle, text: state})
	p.write(`<details class="`, class, "\">\n<summary>")
	p.line(&line)
	p.write("</summary>\n")
	if len(b.line) > 1 {
		p.block(&block{kind: paragraphLine, line: b.line[1:]})
	}
	p.blocks(parts)
	if at >= 0 {
		e := outcomes[at].entry
		p.written[e] = true
		id, _ := p.nameOf(e)
		p.write(`<div id="`, id, "\">\n")
		p.blocks(outcomes[at].body)
		p.links(e)
		p.write("</div>\n")
	}
	p.write("</details>\n")
}

// fold writes a line that unfolds blocks. The link in it stands below the line, a button itself.
func (p *pageWriter) fold(class markup, line *block, parts []block) {
	isName := func(s span) bool { return s.style == nameStyle }
	withoutName := slices.DeleteFunc(slices.Clone(line.line), isName)
	p.write(`<details class="`, class, "\">\n<summary>")
	p.line(&block{kind: line.kind, line: withoutName})
	p.write("</summary>\n")
	at := slices.IndexFunc(line.line, isName)
	if at >= 0 {
		p.block(&block{kind: namingLine, line: line.line[at : at+1]})
	}
	p.blocks(parts)
	p.write("</details>\n")
}

// blocks writes blocks.
func (p *pageWriter) blocks(list []block) {
	for i := range list {
		p.block(&list[i])
	}
}

// lineTags are the elements of lines.
var lineTags = [...][2]markup{
	titleLine: {"<h1>", "</h1>\n"}, headingLine: {"<h2>", "</h2>\n"}, namingLine: {`<p class="at">`, "</p>\n"},
	noteLine: {`<p class="say">`, "</p>\n"}, callLine: {"<p>", "</p>\n"}, resultLine: {"<p>", "</p>\n"},
	paragraphLine: {"<p>", "</p>\n"}, pictureLine: {`<p class="say">`, "</p>\n"},
}

// block writes a block. Thoughts are folded.
func (p *pageWriter) block(b *block) {
	switch b.kind {
	case thoughtText:
		p.write("<details class=\"thinking\">\n<summary>Thinking</summary>\n")
		p.prose(b.text)
		p.write("</details>\n")
	case proseText:
		p.prose(b.text)
	case codeText:
		p.code(b.info == "diff", b.text)
	case pictureLine:
		p.picture(b)
	default:
		if len(b.line) > 0 {
			p.write(lineTags[b.kind][0])
			p.line(b)
			p.write(lineTags[b.kind][1])
		}
	}
}

// spanTags are the elements of spans.
var spanTags = [...][2]markup{
	emphasisStyle: {"<em>", "</em>"}, strongStyle: {"<strong>", "</strong>"}, codeStyle: {"<code>", "</code>"},
	strongCodeStyle: {"<strong><code>", "</code></strong>"}, timeStyle: {"<small>", "</small>"}, imageStyle: {},
}

// line writes the spans of a line. The name of the entry becomes a link to itself.
func (p *pageWriter) line(b *block) {
	for i, s := range b.line {
		if i > 0 {
			p.write(escaped(separators[b.kind]))
		}
		tags := spanTags[s.style]
		switch {
		case s.style == imageStyle:
			p.embed(s.target, strings.TrimSpace(s.text))
			continue
		case s.style != nameStyle:
		case isPlainName(s.text):
			target := s.target
			if target == "" {
				target = s.text
			}
			tags = [2]markup{`<a href="#` + escaped(target) + `">`, "</a>"}
		default:
			tags = spanTags[codeStyle]
		}
		p.write(tags[0], escaped(s.text), tags[1])
	}
}

// prose writes text of Markdown.
func (p *pageWriter) prose(text []byte) {
	p.source = bareWriter.append(p.source[:0], block{kind: proseText, text: text})
	p.convert(p.source)
}

// maxPiece is the longest piece of Markdown that is rendered, in bytes. Nobody writes so much.
const maxPiece = 1 << 20

// convert writes Markdown. Markdown that no person has written is shown as it is: brackets without
// end take a parser the square of the time.
func (p *pageWriter) convert(source []byte) {
	if len(source) > maxPiece || absurd(source) {
		p.write("<pre>", escaped(string(source)), "</pre>\n")
		return
	}
	doc := p.markdown.Parser().Parse(text.NewReader(source))
	err := p.markdown.Renderer().Render(p.out, source, doc)
	if p.err == nil {
		p.err = err
	}
}

// end ends the page.
func (p *pageWriter) end() error {
	p.write(pageShell().end)
	flushed := p.out.Flush()
	if p.err != nil {
		return p.err
	}
	return flushed
}

// maxBrackets is how many brackets and emphasis marks may open in a paragraph.
const maxBrackets = 5000

// blankLines are the ends of paragraphs.
var blankLines = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\n\s*\n`) })

// absurd reports whether a piece is nested as no person does it. Quotes and lists in a transcript
// are bounded (package markdown).
func absurd(piece []byte) bool {
	signs := [][]byte{[]byte("["), []byte("*"), []byte("_"), []byte("`")}
	isOver := func(text []byte) bool {
		open := 0
		for _, sign := range signs {
			open += bytes.Count(text, sign)
		}
		return open > maxBrackets
	}
	if !isOver(piece) {
		return false
	}
	paragraphs := blankLines().Split(string(piece), -1)
	return slices.ContainsFunc(paragraphs, func(text string) bool {
		return isOver([]byte(text))
	})
}
