package markdown

import "bytes"

// This file copies Markdown that others wrote into a document of ours, as it is but for what would reach
// beyond it: raw HTML and link definitions become plain text, headings stand below ours, a code fence
// that is left open is closed. What is text and what is code is decided as CommonMark 0.31 does it, line
// by line, with a stack of open blocks (its appendix "A parsing strategy"); tables are those of GitHub.

// maxQuoteNesting is how many quotes and list items may stand within each other, in levels: deeper ones
// become text, since the work for a line grows with them, here and in whatever renders the document.
const maxQuoteNesting = 16

// block is an open quote or list item.
type block struct {
	quote  bool
	indent int  // of a list item: columns from its marker's line start to its content
	empty  bool // nothing is in it yet
}

// leafBlock is what an open block that holds lines is.
type leafBlock uint8

const (
	leafNone leafBlock = iota
	leafParagraph
	leafFence
	leafIndented
)

// span is a piece of a buffer.
type span struct{ start, end int }

// markdown is a document that is copied.
type markdown struct {
	out    []byte
	open   []block
	leaf   leafBlock
	fence  fence
	para   []span // the text of each line of the open paragraph, in out
	rows   []int  // which of them could stand between a table's head and its rows
	deeper int    // levels that headings go down
	lowest int    // the lowest level of a heading, 0 for none
}

// fence is the fence that opened a code block.
type fence struct {
	char   byte
	length int
}

// ourHeadings is how many levels of headings are ours: the document's and those of its turns.
const ourHeadings = 2

// deepestHeading is the deepest level that Markdown has.
const deepestHeading = 6

// Append appends visible text as Markdown that keeps to itself. It ends with a newline.
func Append(dst, text []byte) []byte {
	text = bytes.TrimRight(text, " \t\n")
	m := markdown{}
	if bytes.Contains(text, []byte("#")) { // headings keep their order among each other
		m.lines(text)
		if m.lowest > 0 {
			m = markdown{deeper: max(0, ourHeadings+1-m.lowest)}
		} else {
			m = markdown{}
		}
	}
	m.out = dst
	m.lines(text)
	return m.out
}

// AppendQuote appends visible text as a quote of Markdown that keeps to itself.
func AppendQuote(dst, text []byte) []byte {
	// Tabs would reach elsewhere behind the quote's marker than they do without it.
	text = bytes.ReplaceAll(text, []byte("\t"), []byte("    "))
	for line := range bytes.Lines(Append(nil, text)) {
		if line[0] == '\n' {
			dst = append(dst, ">\n"...)
		} else {
			dst = append(append(dst, "> "...), line...)
		}
	}
	return dst
}

func (m *markdown) lines(text []byte) {
	for len(text) > 0 {
		line, rest, _ := bytes.Cut(text, []byte("\n"))
		m.line(line)
		text = rest
	}
	m.endLeaf()
}

// endLeaf closes the open paragraph, or a fence that nobody closed.
func (m *markdown) endLeaf() {
	if m.leaf == leafFence {
		for _, b := range m.open {
			if b.quote {
				m.out = append(m.out, "> "...)
			} else {
				m.out = append(m.out, bytes.Repeat([]byte{' '}, b.indent)...)
			}
		}
		m.out = append(append(m.out, bytes.Repeat([]byte{m.fence.char}, m.fence.length)...), '\n')
	}
	m.closeLeaf()
}

// closeLeaf ends the open block that holds lines, by a line that is none of its own.
func (m *markdown) closeLeaf() {
	if m.leaf == leafParagraph {
		m.escapeParagraph()
		m.para, m.rows = m.para[:0], m.rows[:0]
	}
	m.leaf = leafNone
}

// close closes all blocks but the first n, with what is open in them.
func (m *markdown) close(n int) {
	if n < len(m.open) {
		m.closeLeaf()
		m.open = m.open[:n]
	}
}

// line copies the next line.
func (m *markdown) line(line []byte) {
	c := cursor{line: line}
	matched := m.matchOpen(&c)
	all := matched == len(m.open)
	if all && m.codeLine(&c) {
		return
	}
	if line, ok := withoutTabs(line, len(m.open) > 0); ok {
		m.line(line)
		return
	}
	opened := false // a block begins on this line
	for {
		next, indent := c.ahead()
		if next == len(c.line) || indent >= 4 {
			break
		}
		rest := c.line[next:]
		inParagraph := all && m.leaf == leafParagraph
		if marker, ok := containerMarker(rest, inParagraph); ok {
			if matched >= maxQuoteNesting || opened && marker.empty {
				c.insert(next+marker.width-1, '\\')
				break
			}
			m.startBlock(matched, &c, marker)
			matched, all, opened = len(m.open), true, true
			continue
		}
		if m.lineBlock(&c, next, matched, inParagraph) {
			return
		}
		break
	}
	m.textLine(&c, matched, all)
}

// matchOpen goes along the open blocks that a line continues and returns how many they are.
func (m *markdown) matchOpen(c *cursor) int {
	for i, b := range m.open {
		next, indent := c.ahead()
		blank := next == len(c.line)
		switch {
		case b.quote && !blank && indent < 4 && c.line[next] == '>':
			c.skipQuoteMarker(next)
		case !b.quote && blank && !b.empty:
			c.columns(indent)
		case !b.quote && !blank && indent >= b.indent:
			c.columns(b.indent)
		default:
			return i
		}
	}
	return len(m.open)
}

// codeLine copies a line of the open code block, if it is one; all blocks around it go on.
func (m *markdown) codeLine(c *cursor) bool {
	next, indent := c.ahead()
	switch {
	case m.leaf == leafFence:
		if indent < 4 {
			rest := c.line[next:]
			n := RunLength(rest, m.fence.char)
			if n >= m.fence.length && len(bytes.TrimLeft(rest[n:], " \t")) == 0 {
				m.leaf = leafNone
			}
		}
	case m.leaf == leafIndented && (indent >= 4 || next == len(c.line)):
	default:
		if m.leaf == leafIndented {
			m.leaf = leafNone
		}
		return false
	}
	if m.leaf == leafIndented {
		m.copyIndented(c.line)
	} else {
		m.copy(c.line)
	}
	return true
}

func (m *markdown) copy(line []byte) { m.out = append(append(m.out, line...), '\n') }
