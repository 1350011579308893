package markdown

import (
	"bytes"
	"regexp"
)

// heading copies a heading, lowered below ours but not below the deepest one, and notes its level.
func (c *copier) heading(lead, text []byte) {
	level := RunLength(text, '#')
	if c.lowest == 0 || level < c.lowest {
		c.lowest = level
	}
	c.out = append(c.out, lead...)
	for range min(c.deeper, deepestHeading-level) {
		c.out = append(c.out, '#')
	}
	c.table = true
	c.unsure = false // some programs take it for the head of a table
	c.escape(text)
}

// code copies a line of indented code. Within quotes and items, programs disagree whether it is
// code, so raw HTML is escaped there.
func (c *copier) code(lead, text []byte, within bool) {
	c.out = append(c.out, lead...)
	if within {
		text = tag.ReplaceAll(text, []byte("&lt;$1"))
	}
	c.put(text)
}

// text copies the line src of a paragraph: lead, with the margins of depth quotes and items, and text.
func (c *copier) text(src, lead, text []byte, depth int) {
	isFirst := c.last != paragraph
	if isFirst {
		c.close(depth)
		c.last = paragraph
		c.table = false
		c.unsure = false
	}
	isUncertain := c.table && (marker.Match(text) || len(lead) >= 4)
	if isUncertain {
		// A list or code can begin below the head of a table but not below text, and programs
		// disagree whether this is one.
		c.apart(src)
		return
	}
	next, _, _ := bytes.Cut(c.next, []byte("\n"))
	if isDelimiters(next) {
		c.table = true
	}
	c.out = append(c.out, lead...)
	mayDefine := isFirst || bytes.HasPrefix(text, []byte("[^"))
	isLabel := text[0] == '[' && !label.Match(text)
	if c.labels && mayDefine && isLabel {
		c.out = append(c.out, '\\')
	}
	c.escape(text)
}

var (
	// tag matches the possible start of raw HTML.
	tag = regexp.MustCompile(`<([a-zA-Z/!?])`)
	// label matches a label in brackets that does not begin the definition of a link or a footnote.
	// Definitions are not shown where they are, and change links elsewhere.
	label = regexp.MustCompile(`^\[[^\]\\]*\](?:[^:]|$)`)
	// autolink matches a link that is not changed. Anything else that begins like one becomes text,
	// which is safe and leaves the address readable.
	autolink = regexp.MustCompile("^<(?:https?://|mailto:)[^\\s<>`|\\\\]*>")
	// target matches the target of a link if it cannot be misread.
	target = regexp.MustCompile("^\\]\\([^\\s()<>`\"'\\\\]*\\)")
	// address matches the part of a bare address that makes it a link in some programs.
	address = regexp.MustCompile(`(?i)://|www\.|mailto:|xmpp:`)
)

// escape copies text and turns raw HTML into plain text. A code span is not changed if it is one in
// any context: it ends on its line and within its table cell, and nothing before it in the
// paragraph is ambiguous.
func (c *copier) escape(text []byte) {
	if !c.tags {
		c.put(text)
		return
	}
	done := 0
	i := 0
	for {
		signs := "<`]\\"
		if c.unsure {
			signs = "<"
		}
		next := bytes.IndexAny(text[i:], signs)
		if next < 0 {
			break
		}
		i += next
		rest := text[i:]
		i++
		switch rest[0] {
		case '<':
			if mayBeTag(rest) {
				before := text[:i-1]
				c.out = append(c.out, before[done:]...)
				c.out = append(c.out, c.escapedBracket(before)...)
				done = i
			}
		case '`':
			i += c.codeSize(rest, text[:i-1]) - 1
		case ']':
			isLink := len(rest) > 1 && rest[1] == '('
			c.unsure = isLink && !target.Match(rest)
		case '\\':
			escapes := len(rest) > 1
			if escapes && rest[1] == '<' && inAddress(text[:i-1]) { // the bracket is looked at next
				escapes = false
			}
			if escapes {
				i++
			}
		}
	}
	c.put(text[done:])
	if bytes.HasSuffix(bytes.TrimRight(text, " \t"), []byte(`\`)) {
		c.unsure = true
	}
}

// mayBeTag reports whether a text that begins with < may begin raw HTML. A link in brackets is none.
func mayBeTag(text []byte) bool {
	begin := text[:min(2, len(text))] // as long as tag's matches are
	return tag.Match(begin) && !autolink.Match(text)
}

// escapedBracket returns the escape of a < behind a part of a line. A backslash would do nothing in an
// address, and behind another one; in some programs also at the beginning of a line below such a one.
func (c *copier) escapedBracket(before []byte) string {
	mayBeEscaped := c.unsure && len(before) == 0
	isEscaped := bytes.HasSuffix(before, []byte(`\`))
	if mayBeEscaped || isEscaped || inAddress(before) {
		return "&lt;"
	}
	return `\<`
}

// codeSize returns the size of the code span at the beginning of a text, behind a part of its line. If it may
// be none in some program, that is the size of its backticks, and the rest of the paragraph is unsure.
func (c *copier) codeSize(text, before []byte) int {
	n := RunLength(text, '`')
	span := codeSpan(text, n)
	mayEndCell := c.table && bytes.IndexByte(span, '|') >= 0
	if len(span) == 0 || mayEndCell || inAddress(before) {
		c.unsure = true
		return n
	}
	return len(span)
}

// codeSpan returns the code span at the start of text that begins with n backticks, nil if it does
// not end in text.
func codeSpan(text []byte, n int) []byte {
	i := n
	for {
		next := bytes.IndexByte(text[i:], '`')
		if next < 0 {
			return nil
		}
		i += next
		run := RunLength(text[i:], '`')
		i += run
		if run == n {
			return text[:i]
		}
	}
}

// longestWord is the number of bytes that inAddress looks back.
const longestWord = 256

// inAddress reports whether the text after this one may be part of an address. Backslashes do not
// escape anything there.
func inAddress(text []byte) bool {
	word := text[max(0, len(text)-longestWord):]
	begin := bytes.LastIndexAny(word, " \t") + 1
	word = word[begin:]
	isCut := len(word) == longestWord // its beginning is not looked at
	return isCut || address.Match(word)
}
