package markdown

import (
	"bytes"
	"regexp"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// Append appends visible text as Markdown that affects nothing outside it. Raw HTML and link
// definitions become plain text, headings are lowered below ours, and an open code fence is closed;
// everything else stays as it is. The result ends with a newline.
func Append(dst, text []byte) []byte {
	text = bytes.TrimRight(text, " \t\n")
	c := copier{
		out:    dst,
		tags:   tag.Match(text),
		labels: bytes.Contains(text, []byte("]:")),
	}
	lowest := lowestHeading(text)
	if lowest > 0 { // keep the relative levels of headings
		c.deeper = max(0, ourHeadings+1-lowest)
	}
	c.lines(text)
	return c.out
}

// lowestHeading returns the lowest level of the headings in a text, 0 if there are none. A copy that is
// thrown away finds them, since a # in code is none.
func lowestHeading(text []byte) int {
	if !bytes.Contains(text, []byte("#")) {
		return 0
	}
	var c copier
	c.lines(text)
	return c.lowest
}

// AppendQuote appends visible text as a quote of Markdown that affects nothing outside it, as Append does.
func AppendQuote(dst, text []byte) []byte {
	// Tabs would have another width after the quote's marker.
	text = bytes.ReplaceAll(text, []byte("\t"), []byte("    "))
	for line := range bytes.Lines(Append(nil, text)) {
		if line[0] == '\n' {
			dst = append(dst, ">\n"...)
		} else {
			dst = append(dst, "> "...)
			dst = append(dst, line...)
		}
	}
	return dst
}

// This file classifies the lines of other people's Markdown: code, which is not changed, headings,
// and running text. The kind of a line depends on its first characters after the margins of the
// quotes and list items around it. How text is changed is in text.go.

const (
	// ourHeadings is the number of levels of headings that are ours: the document's and its turns'.
	ourHeadings = 2
	// deepestHeading is the deepest level that Markdown has.
	deepestHeading = 6
	// maxNesting is the maximum number of nested quotes and list items. Deeper ones become text,
	// since the work for a line grows with the nesting, here and in programs that render the
	// document.
	maxNesting = 16
)

// Patterns of the beginnings of lines.
var (
	heading   = regexp.MustCompile(`^#{1,6}(?:[ \t]|$)`)
	fence     = regexp.MustCompile("^(?:`{3,}[^`]*$|~{3,})")
	underline = regexp.MustCompile(`^(?:=+|-+)[ \t]*$`) // turns the text above it into a heading
	marker    = regexp.MustCompile(`^(?:>|(?:[-+*]|[0-9]{1,9}[.)])(?:[ \t]|$))`)
	markers   = regexp.MustCompile(`[-+*0-9.)]`) // the characters of item markers
	// interrupts matches a marker that can be directly below text.
	interrupts = regexp.MustCompile(`^(?:>|(?:[-+*]|0*1[.)])[ \t]+[^ \t])`)
)

// isRule reports whether a text, which is not empty, is a thematic break: three or more of one sign, and blanks.
func isRule(text []byte) bool {
	if bytes.IndexByte([]byte("*-_"), text[0]) < 0 {
		return false
	}
	sign := text[:1]
	others := bytes.Trim(text, string(sign)+" \t")
	return len(others) == 0 && bytes.Count(text, sign) >= 3
}

// isDelimiters reports whether a line could be the delimiter row of a table.
func isDelimiters(line []byte) bool {
	others := bytes.Trim(line, ">|:- \t")
	return len(others) == 0 && bytes.IndexByte(line, '-') >= 0
}

// special is the set of first bytes of lines that may not be plain text.
var special = [256]bool{'#': true, '`': true, '~': true, '*': true, '-': true, '_': true, '=': true, '+': true, '>': true,
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true, '8': true, '9': true}

// blockKind is the kind of block that the last line belongs to.
type blockKind uint8

const (
	nothing blockKind = iota // a block that does not continue
	paragraph
	fenced
)

// copier copies Markdown line by line.
type copier struct {
	out  []byte
	next []byte // the following lines

	tags   bool // the text may have raw HTML
	labels bool // the text may have link definitions
	deeper int  // number of levels to lower headings by
	lowest int  // the lowest level of a heading so far, 0 for none

	open  []int // the open quotes and list items: the number of columns before an item's text, 0 for a quote
	empty bool  // the last of them is an item without content so far
	last  blockKind

	fence  []byte // the fence that opened the code
	margin []byte // the margin before each line of the code

	table  bool // the paragraph may be a table
	unsure bool // in the rest of the paragraph the looks of code may deceive
}

// lines copies the lines of a text, and closes its last code fence.
func (c *copier) lines(text []byte) {
	for len(text) > 0 {
		var line []byte
		line, text, _ = bytes.Cut(text, []byte("\n"))
		c.next = text
		c.line(line)
	}
	if c.last == fenced { // the text does not close its code
		c.out = append(c.out, c.margin...)
		c.put(c.fence)
	}
}

// put appends text, or the rest of a line, and a newline.
func (c *copier) put(line []byte) {
	c.out = append(c.out, line...)
	c.out = append(c.out, '\n')
}

// line copies one line: of fenced code as it is, else by its beginning.
func (c *copier) line(src []byte) {
	line, depth, at := c.enter(src)
	isCode := c.last == fenced && depth == len(c.open)
	if isCode {
		if c.closesFence(line, at) {
			c.last = nothing
		}
		c.put(src)
		return
	}
	start := c.begin(line, depth, at)
	if start.text == len(start.line) { // a blank line
		c.close(start.depth)
		c.put(src)
		return
	}
	lead := start.line[:start.text]
	text := start.line[start.text:]
	if bytes.Equal(bytes.TrimLeft(src, " \t"), text) {
		lead = src[:len(src)-len(text)] // with the original tabs
	}
	isIndented := start.spaces >= 4
	switch {
	case isIndented && c.last != paragraph:
		c.close(start.depth)
		c.code(lead, text, start.depth > 0)
	case isIndented || !special[text[0]]:
		c.text(src, lead, text, start.depth)
	default:
		c.specialLine(src, lead, text, start.depth)
	}
}

// specialLine copies a line whose text begins with one of the special bytes. lead is the text before it, with the margins
// of depth quotes and items.
func (c *copier) specialLine(src, lead, text []byte, depth int) {
	isBelowText := c.last == paragraph && depth == len(c.open)
	switch {
	case heading.Match(text):
		c.close(depth)
		c.heading(lead, text)
	case fence.Match(text):
		c.close(depth)
		c.openFence(lead, text)
	case isBelowText && underline.Match(text):
		if isRule(text) { // with a blank line before it, it is a thematic break
			c.apart(src)
			return
		}
		c.out = append(c.out, lead...)
		c.out = append(c.out, '\\')
		c.put(text)
	case isRule(text):
		c.close(depth)
		c.out = append(c.out, lead...)
		c.put(text)
	default:
		c.text(src, lead, text, depth)
	}
}

// openFence copies a line that opens fenced code.
func (c *copier) openFence(lead, text []byte) {
	c.last = fenced
	c.fence = text[:RunLength(text, text[0])]
	c.margin = markers.ReplaceAll(lead, []byte(" "))
	// Some programs take a line with bars for the head of a table, not for a fence.
	text = bytes.ReplaceAll(text, []byte("|"), []byte("&#124;"))
	c.out = append(c.out, lead...)
	c.put(text)
}

// close ends the current block and closes all open quotes and items but the first n.
func (c *copier) close(n int) {
	c.open = c.open[:n]
	c.last = nothing
}

// apart copies a line anew, with a blank line before it that ends the paragraph.
func (c *copier) apart(src []byte) {
	c.line(nil)
	c.line(src)
}

// closesFence reports whether a line closes the open fence. at is the column after its margins.
func (c *copier) closesFence(line []byte, at int) bool {
	line, at, spaces := indent(line, at)
	text := line[at:]
	if spaces >= 4 || !bytes.HasPrefix(text, c.fence) {
		return false
	}
	rest := text[RunLength(text, c.fence[0]):]
	return len(bytes.TrimLeft(rest, " \t")) == 0
}

// enter matches the margins of the open quotes and items that a line continues. It returns the line
// with the tabs in its margins expanded, the number of these quotes and items, and the column after
// their margins.
func (c *copier) enter(line []byte) (wide []byte, depth, at int) {
	for depth < len(c.open) {
		var text, spaces int
		line, text, spaces = indent(line, at)
		isBlank := text == len(line)
		margin := c.open[depth]
		isQuote := margin == 0
		hasSign := !isBlank && spaces < 4 && line[text] == '>'
		isEmptyItem := c.empty && depth == len(c.open)-1
		switch {
		case isQuote && hasSign:
			line, _, spaces = indent(line, text+1)
			at = text + 1 + min(spaces, 1)
		case isQuote:
			return line, depth, at
		case isBlank && !isEmptyItem: // a blank line ends no item with content
			at = text
		case !isBlank && spaces >= margin:
			at += margin
		default:
			return line, depth, at
		}
		depth++
	}
	return line, depth, at
}

// lineStart is the beginning of a line behind its quotes and items. The line "> - text" has
//
//	depth   2   a quote and an item
//	text    4   the offset of "text"
//	spaces  0   as the blank before "text" is part of the item's margin
type lineStart struct {
	line   []byte // with the tabs in its margins expanded
	depth  int    // the number of open quotes and items
	text   int    // the offset of the first text
	spaces int    // the number of blanks before the text, behind the last margin
}

// begin opens the quotes and items that begin on a line after those that it continues, which are depth in number. at is
// the column after their margins. A marker that would open too many, or an empty item at once in another one, is escaped.
func (c *copier) begin(line []byte, depth, at int) lineStart {
	c.empty = false
	start := lineStart{depth: depth}
	start.line, start.text, start.spaces = indent(line, at)
	hasOpened := false
	for c.hasMarker(&start) {
		rest := start.line[start.text:]
		width := rawjson.SkipDigits(rest, 0) + 1
		isQuote := rest[0] == '>'
		isEmpty := len(bytes.TrimLeft(rest[width:], " \t")) == 0
		isEmptyItem := isEmpty && !isQuote
		isInner := isEmptyItem && hasOpened // programs disagree on these
		if isInner || start.depth == maxNesting {
			markerEnd := start.text + width - 1
			start.line = slices.Insert(bytes.Clone(start.line), markerEnd, '\\')
			return start
		}
		c.openAt(&start, width, isQuote, isEmpty)
		hasOpened = true
	}
	return start
}

// hasMarker reports whether the text of a line begins with the marker of a quote or an item.
func (c *copier) hasMarker(start *lineStart) bool {
	text := start.line[start.text:]
	if len(text) == 0 || start.spaces >= 4 || !special[text[0]] {
		return false
	}
	if !marker.Match(text) || isRule(text) {
		return false
	}
	isBelowText := c.last == paragraph && start.depth == len(c.open)
	return !isBelowText || interrupts.Match(text)
}

// openAt opens the quote or item of a marker, which has width characters, and moves behind its margin.
func (c *copier) openAt(start *lineStart, width int, isQuote, isEmpty bool) {
	c.close(start.depth)
	line, _, spaces := indent(start.line, start.text+width)
	margin := start.spaces + width
	switch {
	case isQuote:
		margin = 0
		spaces = min(spaces, 1)
	case spaces > 4 || isEmpty: // followed by code, or by nothing
		margin++
		spaces = min(spaces, 1)
	default:
		margin += spaces
	}
	c.open = append(c.open, margin)
	c.empty = isEmpty && !isQuote
	start.depth++
	start.line, start.text, start.spaces = indent(line, start.text+width+spaces)
}

// indent returns the offset of the first text of a line at or after at, and the number of blanks
// before it. Tabs among them are expanded: of "- \tx" from 1 on it returns "-   x", 4 and 3.
func indent(line []byte, at int) (wide []byte, text, spaces int) {
	text = at
	for text < len(line) && line[text] == ' ' {
		text++
	}
	if text == len(line) || line[text] != '\t' {
		return line, text, text - at
	}
	rest := bytes.TrimLeft(line[text:], " \t")
	blanks := line[text : len(line)-len(rest)]
	wide = bytes.Clone(line[:text])
	for _, b := range blanks {
		wide = append(wide, ' ')
		if b == '\t' {
			wide = toTabStop(wide)
		}
	}
	return append(wide, rest...), len(wide), len(wide) - at
}

// toTabStop appends blanks up to the next column that is a multiple of 4.
func toTabStop(line []byte) []byte {
	for len(line)%4 != 0 {
		line = append(line, ' ')
	}
	return line
}
