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
func Page(ctx context.Context, w io.Writer, subject Subject) error {
	s := subject.Session
	size := &sizedWriter{Writer: w}
	p := newPage(size, s, subject.Blobs)
	p.alone = subject.Alone
	var path []sessioncore.Entry
	if subject.End != sessioncore.NoEntry {
		path = s.Path(subject.End)
	}
	err := p.header(&subject, path)
	if err != nil {
		return err
	}
	err = p.parts(ctx, p.plan(path))
	if err != nil {
		return err
	}
	if !subject.Alone {
		p.anchorOthers()
	}
	p.write("</main>\n")
	isMasked := subject.Blobs == nil // its lines would show the masked texts
	if !isMasked {
		err := p.download(ctx, path, size.size)
		if err != nil {
			return err
		}
	}
	return p.end()
}

// anchorOthers writes anchors of the entries that are in no branch, such as moves of the leaf.
func (p *pageWriter) anchorOthers() {
	for e, isWritten := range p.written {
		if !isWritten {
			p.anchor(sessioncore.Entry(e))
		}
	}
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

// copy returns a page that writes other entries of the same page to w. It shares the marks and the flags of written
// entries with p.
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

// header writes all that is before the list of entries. path is the current branch.
func (p *pageWriter) header(subject *Subject, path []sessioncore.Entry) error {
	for _, e := range path { // headOf finds a title in them
		p.entries.entries = append(p.entries.entries, shownEntry{entry: e})
	}
	head, err := p.entries.headOf(p.s, false)
	if err != nil {
		return err
	}
	p.entries.entries = nil
	title := "Session"
	var about []block // behind the title
	if len(head) > 0 {
		title = head[0].line[0].text
		about = head[1:]
	}
	var above markup
	if subject.Index != "" {
		above = `<p><a href="` + escaped(subject.Index) + "\">All sessions</a></p>\n"
	}
	p.begin(above, title)
	p.blocks(about)
	length, turns := extent(subject, path)
	p.facts(
		[2]string{"Agent", subject.Agent},
		[2]string{"Model", subject.Model},
		[2]string{"Duration", length},
		[2]string{"Turns", strconv.Itoa(turns)},
		[2]string{"Tokens", subject.Tokens},
		[2]string{"Cost", subject.Cost},
	)
	p.write("</header>\n", markup(pageTools))
	return nil
}

// nameOf returns the name of an entry as an attribute id, and as a link to it.
func (p *pageWriter) nameOf(e sessioncore.Entry) (id, href markup) {
	name := p.s.Name(e)
	return escaped(name), `"#` + escaped(url.PathEscape(name)) + `"`
}

// outline writes the tree as report.Log draws it, each entry a link; of one branch alone, path, its
// entries. It sets p.marks, and closes p.outlined.
func (p *pageWriter) outline(ctx context.Context, path []sessioncore.Entry) error {
	defer close(p.outlined)
	isOnBranch := map[sessioncore.Entry]bool{}
	for _, e := range path {
		isOnBranch[e] = true
	}
	p.write("<nav aria-label=\"Entries\">\n<ul>\n")
	err := report.Log(ctx, p.s, false, func(l *report.LogLine) error {
		if p.alone {
			if !isOnBranch[l.Entry] {
				return nil
			}
			l.Graph = "*" // one branch has no other lines
		}
		p.outlineLine(l)
		return nil
	})
	p.write("</ul>\n</nav>\n</div>\n<main id=\"/main\">\n")
	return err
}

// outlineLine writes a line of the tree. The marks of an entry without a label are kept for the heading of its
// branch.
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
	isLabelled := p.isLabelled(l.Entry)
	if marks != "" && !isLabelled {
		p.marks[l.Entry] = marks
	}
	var classes []string
	if p.s.IsRequest(l.Entry) {
		classes = append(classes, "user")
	}
	if l.Call {
		classes = append(classes, "tool")
	}
	if isLabelled {
		classes = append(classes, "labelled")
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

// isLabelled reports whether an entry has a label.
func (p *pageWriter) isLabelled(e sessioncore.Entry) bool {
	id, _ := p.s.ID(e)
	return p.s.LabelOf(id) != ""
}

// callOutcome is the result of a call, as it stands within the call.
type callOutcome struct {
	entry sessioncore.Entry
	call  string // its id
	body  []block
}

// outcomesIn returns the results of tools at the beginning of a path, at most maxCalls. They are valid until the next
// use of p.results.
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

// entry writes an entry, with an anchor. begins says that a turn begins with it; outcomes are the results of its
// calls.
func (p *pageWriter) entry(e sessioncore.Entry, begins bool, blocks *entryBlocks, outcomes []callOutcome) {
	p.written[e] = true
	name, _ := p.nameOf(e)
	body := blocks.body
	if len(body) == 0 {
		p.anchor(e)
		return
	}
	id, _ := p.s.ID(e)
	label := p.s.LabelOf(id)
	p.write(`<article id="`, name, `" class="`, classesOf(blocks, begins, label), "\">\n")
	if label != "" {
		p.write(`<p class="label">`, escaped(names.FirstWords(label, maxWord)), "</p>\n")
	}
	p.block(blocks.opening(begins))
	isResult := blocks.flags&joinsTurn != 0
	if isResult {
		p.fold("result", &body[0], body[1:])
	} else {
		p.body(body, outcomes)
	}
	p.links(e)
	p.write("</article>\n")
}

// body writes the blocks of an entry. The parts of a call or a result stand behind it.
func (p *pageWriter) body(blocks []block, outcomes []callOutcome) {
	for len(blocks) > 0 {
		b := &blocks[0]
		parts := blocks[1 : 1+b.parts]
		blocks = blocks[1+b.parts:]
		switch b.kind {
		case callLine:
			p.call(b, parts, outcomes)
		case resultLine:
			p.fold("result", b, parts)
		default:
			p.block(b)
		}
	}
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
	isResult := blocks.flags&joinsTurn != 0
	hasOnlyCalls := has(callLine, resultLine) && !has(proseText)
	switch {
	case blocks.flags&fromUser != 0:
		classes = "user"
	case isResult || hasOnlyCalls:
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

// links writes links to the branches that begin at an entry, if there are several.
func (p *pageWriter) links(e sessioncore.Entry) {
	tree := p.s.Tree()
	if p.alone || !tree.Has(e) {
		return
	}
	children := tree.Children(e)
	if len(children) < 2 {
		return
	}
	p.write(`<p class="fork">Branches from here:`)
	for i, child := range children {
		if i == maxForks {
			p.write(" …")
			break
		}
		_, href := p.nameOf(child)
		name := names.FirstWords(p.s.Name(child), maxWord)
		p.write(" <a href=", href, ">", escaped(name), "</a>")
	}
	p.write("</p>\n")
}

// call writes a call as one line that unfolds, with its result, which is written then.
func (p *pageWriter) call(b *block, parts []block, outcomes []callOutcome) {
	outcome := p.outcomeOf(b.call, outcomes)
	class := markup("call")
	state := ""
	switch {
	case outcome == nil:
		state = "no result"
	case outcome.body[0].failed:
		class = "call failed"
		state = "failed"
	}
	tool := b.line[:1:1]
	intent := b.line[1:]
	line := block{kind: resultLine, line: tool}
	line.add(codeOf(b.info), span{style: emphasisStyle, text: state})
	p.write(`<details class="`, class, "\">\n<summary>")
	p.line(&line)
	p.write("</summary>\n")
	if len(intent) > 0 {
		p.block(&block{kind: paragraphLine, line: intent})
	}
	p.blocks(parts)
	if outcome != nil {
		e := outcome.entry
		p.written[e] = true
		name, _ := p.nameOf(e)
		p.write(`<div id="`, name, "\">\n")
		p.blocks(outcome.body)
		p.links(e)
		p.write("</div>\n")
	}
	p.write("</details>\n")
}

// outcomeOf returns the result of a call by its id, nil if there is none that is not written yet.
func (p *pageWriter) outcomeOf(call string, outcomes []callOutcome) *callOutcome {
	if call == "" {
		return nil
	}
	for i := range outcomes {
		o := &outcomes[i]
		if o.call == call && !p.written[o.entry] {
			return o
		}
	}
	return nil
}

// fold writes a line that unfolds blocks. The name of the entry in it, a link, stands below the line, which is a
// button itself.
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
		switch s.style {
		case imageStyle:
			p.embed(s.target, strings.TrimSpace(s.text))
		case nameStyle:
			tags := nameTags(&s)
			p.write(tags[0], escaped(s.text), tags[1])
		default:
			tags := spanTags[s.style]
			p.write(tags[0], escaped(s.text), tags[1])
		}
	}
}

// nameTags returns the element of the name of an entry: a link, or code for a name that is not plain.
func nameTags(s *span) [2]markup {
	if !isPlainName(s.text) {
		return spanTags[codeStyle]
	}
	target := s.target
	if target == "" {
		target = s.text
	}
	return [2]markup{`<a href="#` + escaped(target) + `">`, "</a>"}
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
	if len(source) > maxPiece || isTooNested(source) {
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

// isTooNested reports whether a paragraph of a piece is nested as no person does it, by the signs that may open
// something. Quotes and lists in a transcript are bounded (package markdown).
func isTooNested(piece []byte) bool {
	signs := [][]byte{[]byte("["), []byte("*"), []byte("_"), []byte("`")}
	isOver := func(text []byte) bool {
		open := 0
		for _, sign := range signs {
			open += bytes.Count(text, sign)
		}
		return open > maxBrackets
	}
	if !isOver(piece) { // as nearly all are, so that they need not be split
		return false
	}
	paragraphs := blankLines().Split(string(piece), -1)
	return slices.ContainsFunc(paragraphs, func(text string) bool {
		return isOver([]byte(text))
	})
}
