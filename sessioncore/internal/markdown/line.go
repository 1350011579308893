package markdown

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
)

// cursor is a place in a line, in bytes and in columns: a tab reaches to the next multiple of four.
type cursor struct {
	line   []byte
	offset int
	column int
}

// ahead returns the offset of the next byte that is no space, and how many columns away it is.
func (c *cursor) ahead() (next, indent int) {
	column := c.column
	for next = c.offset; next < len(c.line); next++ {
		switch c.line[next] {
		case ' ':
			column++
		case '\t':
			column += 4 - column%4
		default:
			return next, column - c.column
		}
	}
	return next, column - c.column
}

// columns goes on by that many columns; it may stop within a tab.
func (c *cursor) columns(n int) {
	for n > 0 && c.offset < len(c.line) {
		width := 1
		if c.line[c.offset] == '\t' {
			width = 4 - c.column%4
		}
		step := min(width, n)
		c.column += step
		n -= step
		if step == width {
			c.offset++
		}
	}
}

// skipQuoteMarker goes behind a quote's marker and the blank that belongs to it.
func (c *cursor) skipQuoteMarker(at int) {
	_, indent := c.ahead()
	c.columns(indent + 1)
	if at+1 < len(c.line) && (c.line[at+1] == ' ' || c.line[at+1] == '\t') {
		c.columns(1)
	}
}

// insert puts a byte into the line, which it copies.
func (c *cursor) insert(at int, b byte) {
	line := make([]byte, 0, len(c.line)+1)
	line = append(append(line, c.line[:at]...), b)
	c.line = append(line, c.line[at:]...)
}

// marker begins a quote or a list item.
type marker struct {
	quote bool
	width int  // in bytes and columns
	empty bool // of a list item: nothing follows on the line
}

// containerMarker returns the marker that rest, a line from its first byte that is no space on, begins
// with. A paragraph is interrupted by some list items only.
func containerMarker(rest []byte, inParagraph bool) (marker, bool) {
	if rest[0] == '>' {
		return marker{quote: true, width: 1}, true
	}
	m := marker{width: 1}
	switch c := rest[0]; {
	case c == '-' || c == '+' || c == '*':
		if isThematicBreak(rest) || inParagraph && isUnderline(rest) {
			return m, false
		}
	case c >= '0' && c <= '9':
		digits := rawjson.SkipDigits(rest, 0)
		if digits > 9 || digits == len(rest) || rest[digits] != '.' && rest[digits] != ')' {
			return m, false
		}
		if inParagraph && len(bytes.TrimLeft(rest[:digits], "0")) != 1 || inParagraph && rest[digits-1] != '1' {
			return m, false
		}
		m.width = digits + 1
	default:
		return m, false
	}
	after := rest[m.width:]
	m.empty = len(bytes.TrimLeft(after, " \t")) == 0
	return m, (len(after) == 0 || after[0] == ' ' || after[0] == '\t') && !(inParagraph && m.empty)
}

// headingLevel returns the level of the heading that a line is, 0 for none.
func headingLevel(rest []byte) int {
	n := RunLength(rest, '#')
	if n > deepestHeading || n < len(rest) && rest[n] != ' ' && rest[n] != '\t' {
		return 0
	}
	return n
}

// openingFence returns the fence that a line is.
func openingFence(rest []byte) (fence, bool) {
	f := fence{char: rest[0]}
	if f.char != '`' && f.char != '~' {
		return f, false
	}
	f.length = RunLength(rest, f.char)
	return f, f.length >= 3 && (f.char == '~' || bytes.IndexByte(rest[f.length:], '`') < 0)
}

// isUnderline reports whether a line makes a heading of the paragraph above it.
func isUnderline(rest []byte) bool {
	if rest[0] != '=' && rest[0] != '-' {
		return false
	}
	return len(bytes.TrimLeft(rest[RunLength(rest, rest[0]):], " \t")) == 0
}

// isThematicBreak reports whether a line is a rule.
func isThematicBreak(rest []byte) bool {
	char, n := rest[0], 0
	if char != '*' && char != '-' && char != '_' {
		return false
	}
	for _, c := range rest {
		switch c {
		case char:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

// isDelimiterRow reports whether a line could stand between a table's head and its rows.
func isDelimiterRow(rest []byte) bool {
	return bytes.IndexByte(rest, '-') >= 0 && len(bytes.Trim(rest, "|:- \t")) == 0
}

// withoutTabs replaces the tabs before the text of a line in a quote or list item by the blanks that they
// stand for: not all programs agree on how far they reach there. ok is false where there are none.
func withoutTabs(line []byte, nested bool) (replaced []byte, ok bool) {
	if bytes.IndexByte(line, '\t') < 0 {
		return line, false
	}
	end := len(line) - len(bytes.TrimLeft(line, " \t>-+*0123456789.)"))
	if bytes.IndexByte(line[:end], '\t') < 0 || !nested && len(bytes.TrimLeft(line[:end], " \t")) == 0 {
		return line, false
	}
	for _, b := range line[:end] {
		if b != '\t' {
			replaced = append(replaced, b)
			continue
		}
		for replaced = append(replaced, ' '); len(replaced)%4 != 0; {
			replaced = append(replaced, ' ')
		}
	}
	return append(replaced, line[end:]...), true
}

// withoutBars escapes the bars in a line that opens a fence: some programs see a table's head in it before
// they see the fence.
func withoutBars(line []byte) []byte { return bytes.ReplaceAll(line, []byte("|"), []byte("&#124;")) }
