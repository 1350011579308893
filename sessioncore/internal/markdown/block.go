package markdown

// startBlock opens a quote or a list item.
func (m *markdown) startBlock(matched int, c *cursor, marker marker) {
	m.close(matched)
	m.closeLeaf()
	m.filled()
	next, indent := c.ahead()
	if marker.quote {
		c.skipQuoteMarker(next)
		m.open = append(m.open, block{quote: true})
		return
	}
	c.columns(indent)
	c.columns(marker.width)
	after, spaces := c.ahead()
	empty := after == len(c.line)
	if spaces > 4 || empty {
		spaces = min(spaces, 1) // the rest is an indented code block, or nothing
		c.columns(spaces)
		spaces = 1
	} else {
		c.columns(spaces)
	}
	m.open = append(m.open, block{indent: indent + marker.width + spaces, empty: empty})
}

// filled notes that something is in the innermost block.
func (m *markdown) filled() {
	if n := len(m.open); n > 0 {
		m.open[n-1].empty = false
	}
}

// lineBlock copies a line that is a block by itself or begins a fence. It returns false for lines of text,
// which it may have changed into such.
func (m *markdown) lineBlock(c *cursor, next, matched int, inParagraph bool) bool {
	rest := c.line[next:]
	if level := headingLevel(rest); level > 0 {
		m.begin(matched)
		if m.lowest == 0 || level < m.lowest {
			m.lowest = level
		}
		for range min(m.deeper, deepestHeading-level) {
			c.insert(next, '#')
		}
		m.para = append(m.para, span{len(m.out) + next, len(m.out) + len(c.line)})
		m.rows = append(m.rows, 1) // to some programs it can be a table's head
		m.copy(c.line)
		m.leaf = leafParagraph
		m.closeLeaf()
		return true
	}
	if f, ok := openingFence(rest); ok {
		m.begin(matched)
		m.leaf, m.fence = leafFence, f
		m.copy(withoutBars(c.line))
		return true
	}
	if inParagraph && isUnderline(rest) {
		// It would make a heading of the paragraph, of a level that is ours.
		if rest[0] == '-' && isThematicBreak(rest) {
			line := c.line
			m.line(nil) // with a blank line before it, it is the rule that it looks like
			m.line(line)
			return true
		}
		c.insert(next, '\\')
		return false
	}
	if isThematicBreak(rest) {
		m.begin(matched)
		m.copy(c.line)
		return true
	}
	return false
}

// begin closes what does not go on before a block that begins.
func (m *markdown) begin(matched int) {
	m.close(matched)
	m.closeLeaf()
	m.filled()
}

// textLine copies a line that begins no block: a blank one, a paragraph's, or indented code.
func (m *markdown) textLine(c *cursor, matched int, all bool) {
	next, indent := c.ahead()
	blank := next == len(c.line)
	if !all && !blank && m.leaf == leafParagraph {
		m.paragraphLine(c, next) // it continues lazily, however it is indented
		return
	}
	m.close(matched)
	switch {
	case blank:
		m.closeLeaf()
		m.copy(c.line)
	case indent >= 4 && m.leaf != leafParagraph:
		m.filled()
		m.leaf = leafIndented
		m.copyIndented(c.line)
	default:
		m.filled()
		m.leaf = leafParagraph
		m.paragraphLine(c, next)
	}
}

// paragraphLine copies a line of the open paragraph. Behind what may be a table's head, lists begin that
// could not begin in a paragraph: a blank line before them makes clear that they do.
func (m *markdown) paragraphLine(c *cursor, next int) {
	if _, list := containerMarker(c.line[next:], false); (list || next-c.offset >= 4) && len(m.rows) > 0 {
		line := c.line
		m.line(nil)
		m.line(line)
		return
	}
	if len(m.para) > 0 && isDelimiterRow(c.line[next:]) {
		m.rows = append(m.rows, len(m.para))
	}
	m.para = append(m.para, span{len(m.out) + next, len(m.out) + len(c.line)})
	m.copy(c.line)
}

// copyIndented copies a line of indented code. Within quotes and lists, not all programs agree that it is.
func (m *markdown) copyIndented(line []byte) {
	start := len(m.out)
	m.copy(line)
	if len(m.open) == 0 || !mayBeTag(line) {
		return
	}
	m.para = append(m.para, span{start, start + len(line)})
	m.escape(m.anyTags(nil, start), start)
	m.para = m.para[:0]
}
