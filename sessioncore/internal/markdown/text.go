package markdown

import (
	"bytes"
	"regexp"
)

// heading copies a heading, below ours.
func (c *copier) heading(lead, text []byte) {
	level := RunLength(text, '#')
	if c.lowest == 0 || level < c.lowest {
		c.lowest = level
	}
	c.out = append(append(c.out, lead...), "######"[:min(c.deeper, deepestHeading-level)]...)
	c.table, c.unsure = true, false // to some programs it can be a table's head
	c.escape(text)
}

// code copies a line of indented code. Within quotes and items, not all programs agree that it is.
func (c *copier) code(lead, text []byte, within bool) {
	c.out = append(c.out, lead...)
	if within {
		text = tag.ReplaceAll(text, []byte("&lt;$1"))
	}
	c.put(text)
}

// text copies a line of a paragraph.
func (c *copier) text(src, lead, text []byte, n int) {
	first := c.last != paragraph
	if first {
		c.close(n)
		c.last, c.table, c.unsure = paragraph, false, false
	} else if c.table && (marker.Match(text) || len(lead) >= 4) {
		// Below a table's head a list or code may begin that could not below text: not all programs agree.
		c.apart(src)
		return
	}
	next, _, _ := bytes.Cut(c.next, []byte("\n"))
	c.table = c.table || isDelimiters(next)
	c.out = append(c.out, lead...)
	if c.labels && text[0] == '[' && (first || bytes.HasPrefix(text, []byte("[^"))) && !label.Match(text) {
		c.out = append(c.out, '\\')
	}
	c.escape(text)
}

var (
	// tag is what begins raw HTML, perhaps.
	tag = regexp.MustCompile(`<([a-zA-Z/!?])`)
	// label is a label in brackets with which no definition of a link or a footnote begins: these are not
	// shown where they stand, and change links elsewhere.
	label = regexp.MustCompile(`^\[[^\]\\]*\](?:[^:]|$)`)
	// autolink is a link that is left alone. Anything else that begins like one is made text: that is safe, and
	// the address can still be read.
	autolink = regexp.MustCompile("^<(?:https?://|mailto:)[^\\s<>`|\\\\]*>")
	// target is a link's target in which nothing can be taken otherwise.
	target = regexp.MustCompile("^\\]\\([^\\s()<>`\"'\\\\]*\\)")
	// address is in a bare address that some programs make a link of.
	address = regexp.MustCompile(`(?i)://|www\.|mailto:|xmpp:`)
)

// escape copies text in which raw HTML becomes plain text. Code spans stay as they are if they are such whatever
// stands around them: if they end on their line, within their cell of a table, and if before them in the
// paragraph nothing can be taken otherwise.
func (c *copier) escape(text []byte) {
	if !c.tags {
		c.put(text)
		return
	}
	done := 0
	for i := 0; ; {
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
			if !tag.Match(rest[:min(2, len(rest))]) || autolink.Match(rest) {
				break
			}
			c.out = append(c.out, text[done:i-1]...)
			// Behind a line that ends in a backslash, some programs let that escape what this one begins with.
			if done = i; c.unsure && i == 1 || i > 1 && text[i-2] == '\\' || inAddress(text[:i-1]) {
				c.out = append(c.out, "&lt;"...)
			} else {
				c.out = append(c.out, `\<`...)
			}
		case '`':
			n := RunLength(rest, '`')
			span := codeSpan(rest, n)
			if len(span) == 0 || c.table && bytes.IndexByte(span, '|') >= 0 || inAddress(text[:i-1]) {
				c.unsure = true
				span = rest[:n]
			}
			i += len(span) - 1
		case ']':
			c.unsure = len(rest) > 1 && rest[1] == '(' && !target.Match(rest)
		case '\\':
			if len(rest) > 1 && !(rest[1] == '<' && inAddress(text[:i-1])) {
				i++
			}
		}
	}
	c.put(text[done:])
	if bytes.HasSuffix(bytes.TrimRight(text, " \t"), []byte(`\`)) {
		c.unsure = true
	}
}

// codeSpan returns the code span that begins with n backticks, nil if it does not end here.
func codeSpan(text []byte, n int) []byte {
	for i := n; ; {
		next := bytes.IndexByte(text[i:], '`')
		if next < 0 {
			return nil
		}
		i += next
		run := RunLength(text[i:], '`')
		if i += run; run == n {
			return text[:i]
		}
	}
}

// longestWord is how far inAddress looks back, in bytes.
const longestWord = 256

// inAddress reports whether what follows a text may belong to an address. A backslash escapes nothing there.
func inAddress(text []byte) bool {
	word := text[max(0, len(text)-longestWord):]
	word = word[bytes.LastIndexAny(word, " \t")+1:]
	return len(word) == longestWord || address.Match(word)
}
