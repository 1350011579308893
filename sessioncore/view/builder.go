package view

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

const (
	// maxProse bounds the running text of an entry that is shown, in stored bytes. That is far more
	// than anybody writes or reads, and it keeps a line of a hostile file from filling the memory.
	maxProse = 1 << 20
	// maxBlocks bounds the content blocks of an entry that are shown.
	maxBlocks = 1000
	// maxOutput bounds the excerpts of tool output in one entry, in bytes together.
	maxOutput = 256 << 10
	// maxWord bounds a shown name of a tool, a model or a mode, in characters.
	maxWord = 100
)

const (
	// dateLayout is the layout of times, which are local: seconds.
	dateLayout = "2006-01-02 15:04:05"
	// clockLayout is the layout of times within a turn.
	clockLayout = "15:04:05"
)

// builder makes the blocks of one entry after the other. They depend only on the entry and, for a
// tool's result, on the message that called the tool, and are valid until the next entry. A builder
// is not safe for concurrent use.
type builder struct {
	s      *sessioncore.Snapshot
	entry  sessioncore.Entry
	blocks entryBlocks
	cut    bool // something was omitted that no link mentions yet
	err    error

	proseLeft  int // bytes of running text that may still be shown of the entry
	outputLeft int // bytes of tool output
	blocksLeft int // content blocks

	calls   []toolCall // of the message callsOf
	callsOf sessioncore.Entry
}

// build returns the blocks of an entry, which are valid until the next call. text is the entry.
func (b *builder) build(e sessioncore.Entry, text rawjson.Value) (*entryBlocks, error) {
	b.entry = e
	b.cut = false
	b.err = nil
	b.blocks = entryBlocks{body: b.blocks.body[:0]}
	b.proseLeft = maxProse
	b.outputLeft = maxOutput
	b.blocksLeft = maxBlocks
	b.entryOf(text)
	b.trimProse()
	if b.cut {
		b.note("Not all of it is shown:")
		b.link("the whole entry")
	}
	if len(b.blocks.body) == 0 {
		b.blocks = entryBlocks{body: b.blocks.body} // an entry without a body is not part of a turn
	}
	return &b.blocks, b.err
}

// turn makes the entry part of a turn. about stands at the end of its heading.
func (b *builder) turn(flags turnFlags, speaker, heading, about string) {
	b.blocks.flags |= inTurn | flags
	b.blocks.speaker = hashOf(speaker)
	b.blocks.heading = lineOf(headingLine, span{text: heading}, b.time(dateLayout), b.name(), codeOf(about))
	if flags&(beginsTurn|joinsTurn) == 0 {
		b.blocks.naming = lineOf(namingLine, b.time(clockLayout), b.name())
	}
}

// name returns the short name of the entry.
func (b *builder) name() span {
	return span{
		style:  nameStyle,
		text:   b.s.ShortName(b.entry),
		target: b.s.Name(b.entry),
	}
}

// time returns the entry's time, nothing if the entry has no time of its own.
func (b *builder) time(layout string) span {
	t, ok := b.s.OwnTime(b.entry)
	if !ok {
		return span{}
	}
	return span{style: timeStyle, text: t.Local().Format(layout)}
}

// lineOf returns a line of those spans that have a text.
func lineOf(k kind, spans ...span) block {
	line := block{kind: k, line: make([]span, 0, len(spans)+1)}
	line.add(spans...)
	return line
}

// add adds spans with a text to the line.
func (b *block) add(spans ...span) {
	for _, s := range spans {
		if s.text != "" {
			b.line = append(b.line, s)
		}
	}
}

// codeOf returns a text as code.
func codeOf(text string) span { return span{style: codeStyle, text: text} }

// line adds a line.
func (b *builder) line(k kind, spans ...span) {
	b.blocks.body = append(b.blocks.body, lineOf(k, spans...))
}

// note adds a line that is not part of the conversation: a label and values.
func (b *builder) note(label string, values ...string) {
	b.line(noteLine, span{style: emphasisStyle, text: label})
	for _, v := range values {
		b.more(codeOf(v))
	}
}

// more adds spans to the last line.
func (b *builder) more(spans ...span) { b.blocks.body[len(b.blocks.body)-1].add(spans...) }

// link adds a link to the entry's file to the last line.
func (b *builder) link(text string) {
	b.more(span{
		style:  linkStyle,
		text:   text,
		target: b.s.Name(b.entry),
	})
}

// code adds text without Markdown.
func (b *builder) code(info string, text []byte) {
	b.blocks.body = append(b.blocks.body, block{
		kind: codeText,
		info: info,
		text: bytes.TrimRight(text, "\n"),
	})
}

// prose adds running text. Texts that follow each other are one block.
func (b *builder) prose(v rawjson.Value) {
	text := b.proseOf(v)
	if len(text) == 0 {
		return
	}
	n := len(b.blocks.body)
	if n > 0 && b.blocks.body[n-1].kind == proseText {
		last := &b.blocks.body[n-1]
		last.text = append(last.text, "\n\n"...)
		last.text = append(last.text, text...)
		return
	}
	b.blocks.body = append(b.blocks.body, block{kind: proseText, text: text})
}

// proseOf returns the visible running text of v, within the entry's limit.
func (b *builder) proseOf(v rawjson.Value) []byte {
	shown := excerptOf(v, excerptLimits{whole: b.proseLeft, head: b.proseLeft})
	b.proseLeft -= min(len(v), b.proseLeft)
	if shown.left > 0 {
		b.cut = true
	}
	return shown.head
}

// trimProse removes blank lines around running text, and running text without others. Where no
// heading precedes, the text begins at the left margin, since it could continue a list of the entry
// before.
func (b *builder) trimProse() {
	hasHeading := b.blocks.flags&beginsTurn != 0
	body := b.blocks.body[:0]
	for _, shown := range b.blocks.body {
		if shown.kind == proseText {
			shown.text = trimBlankLines(shown.text)
			if len(shown.text) == 0 {
				continue
			}
			isFirst := len(body) == 0
			if isFirst && !hasHeading {
				shown.text = bytes.TrimLeft(shown.text, " \t")
			}
		}
		body = append(body, shown)
	}
	b.blocks.body = body
}

// trimBlankLines removes leading blank lines and trailing white space. The first line keeps its
// indentation: of "\n \n  a\n" it returns "  a".
func trimBlankLines(text []byte) []byte {
	text = bytes.TrimRight(text, " \t\n")
	unindented := bytes.TrimLeft(text, " \t\n")
	blanks := text[:len(text)-len(unindented)]
	lineStart := bytes.LastIndexByte(blanks, '\n') + 1
	return text[lineStart:]
}

// output adds a text without Markdown. A long one is shown as head and tail, with a link to the
// entry between them.
func (b *builder) output(info string, v rawjson.Value) {
	limits := outputLimits
	if b.outputLeft < limits.whole {
		limits = excerptLimits{whole: b.outputLeft, head: b.outputLeft}
	}
	b.outputLeft -= min(len(v), limits.whole)
	shown := excerptOf(v, limits)
	isBlank := len(bytes.TrimSpace(shown.head)) == 0
	if isBlank && shown.left == 0 {
		return
	}
	b.code(info, shown.head)
	if shown.left == 0 {
		return
	}
	b.note("… " + sizeText(shown.left) + " left out:")
	b.link("the whole entry")
	if len(shown.tail) > 0 {
		b.code(info, shown.tail)
	}
}

// word returns a string as one line.
func (b *builder) word(v rawjson.Value) string { return shownLine(v, maxWord) }
