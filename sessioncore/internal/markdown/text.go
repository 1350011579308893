package markdown

import (
	"bytes"
	"regexp"
	"slices"
)

// escapeParagraph makes raw HTML and link definitions in the open paragraph, which is the end of m.out,
// plain text.
func (m *markdown) escapeParagraph() {
	if len(m.para) == 0 {
		return
	}
	if text := m.out[m.para[0].start:]; !mayBeTag(text) && !bytes.Contains(text, []byte("]:")) {
		return
	}
	var at []int // where something is escaped
	for i, l := range m.para {
		line := m.out[l.start:l.end]
		if m.definesLink(i, line) || len(line) > 0 && line[0] == '<' && beginsTag(line[1:]) && !autolink.Match(line) {
			at = append(at, l.start) // at a line's start HTML begins whatever the lines around it are
		}
	}
	unsure := m.unsureFrom()
	m.escape(append(at, m.tags(unsure)...), unsure)
}

// escape puts a backslash before places in the open paragraph. Where it could be taken otherwise, and from
// unsure on, a < becomes an entity.
func (m *markdown) escape(at []int, unsure int) {
	if len(at) == 0 {
		return
	}
	slices.Sort(at)
	start := m.para[0].start
	old := bytes.Clone(m.out[start:])
	m.out = m.out[:start]
	done := 0
	for _, i := range slices.Compact(at) {
		entity := old[i-start] == '<' && (i >= unsure || takesBackslash(old[:i-start]))
		m.out = append(m.out, old[done:i-start]...)
		if done = i - start; entity {
			m.out = append(m.out, "&lt;"...)
			done++
		} else {
			m.out = append(m.out, '\\')
		}
	}
	m.out = append(m.out, old[done:]...)
}

// longestWord is how far takesBackslash looks back, in bytes.
const longestWord = 256

// takesBackslash reports whether a backslash behind a text would not escape what follows: behind another
// one, and in an address that programs make a link of.
func takesBackslash(text []byte) bool {
	word := text[max(0, len(text)-longestWord):]
	if at := bytes.LastIndexAny(word, " \t\n"); at >= 0 {
		word = word[at+1:]
	} else if len(word) == longestWord {
		return true // who knows
	}
	return bytes.HasSuffix(word, []byte{'\\'}) || hasAddress(word)
}

// hasAddress reports whether a text has a bare address in it that some programs make a link of.
func hasAddress(text []byte) bool {
	text = bytes.ToLower(text)
	for _, sign := range []string{"://", "www.", "mailto:", "xmpp:"} {
		if bytes.Contains(text, []byte(sign)) {
			return true
		}
	}
	return false
}

// addressHere reports whether an address is told at the place where rest begins.
func addressHere(rest []byte) bool {
	if rest[0] != ':' {
		return len(rest) > 4 && bytes.EqualFold(rest[:4], []byte("www."))
	}
	if bytes.HasPrefix(rest, []byte("://")) {
		return true
	}
	end := bytes.IndexAny(rest[:min(len(rest), longestWord)], " \t<`@")
	return end > 1 && rest[end] == '@'
}

// unsureFrom returns the place in m.out from which on it is not sure what is escaped and what is code:
// behind a line that ends in a backslash, which some programs let reach into the next line; where the
// target of a link takes in a backtick; and at the start of a paragraph of which it is not clear where a
// table begins in it.
func (m *markdown) unsureFrom() int {
	start, unsure := m.para[0].start, len(m.out)
	if len(m.rows) > 1 || len(m.rows) == 1 && m.rows[0] != 1 {
		return start
	}
	for _, l := range m.para {
		if bytes.HasSuffix(bytes.TrimRight(m.out[l.start:l.end], " \t"), []byte{'\\'}) {
			unsure = l.end
			break
		}
	}
	text := m.out[start:unsure]
	for at := 0; bytes.IndexByte(text[at:], '`') >= 0; {
		next := bytes.Index(text[at:], []byte("]("))
		if next < 0 {
			break
		}
		if at += next + len("]("); targetHasTick(text[at:]) {
			return start + at
		}
	}
	return unsure
}

// longestTarget is how far a link's target and title are followed, in bytes: longer ones count as having
// what is looked for.
const longestTarget = 1000

// targetHasTick reports whether the target or the title of a link, which begins text if it is one, may have
// a backtick in it: it begins no code then.
func targetHasTick(text []byte) bool {
	whole := len(text) <= longestTarget
	text = bytes.TrimLeft(text[:min(len(text), longestTarget)], " \t\n")
	end, depth := 0, 0
	for ; end < len(text) && bytes.IndexByte([]byte(" \t\n"), text[end]) < 0 && depth >= 0; end++ {
		switch text[end] {
		case '\\':
			end++
		case '(':
			depth++
		case ')':
			depth--
		}
	}
	closed := depth < 0 // without a title
	if len(text) > 0 && text[0] == '<' {
		if closing := bytes.IndexByte(text, '>'); closing >= 0 {
			end, closed = max(end, closing), false
		}
	}
	end = min(end, len(text))
	if hasTick := bytes.IndexByte(text[:end], '`') >= 0; hasTick || closed {
		return hasTick
	}
	title := bytes.TrimLeft(text[end:], " \t\n")
	if len(title) == 0 {
		return !whole
	}
	closing := map[byte]byte{'"': '"', '\'': '\'', '(': ')'}[title[0]]
	if closing == 0 {
		return false
	}
	last := bytes.LastIndexByte(title[1:], closing)
	return !whole || last >= 0 && bytes.IndexByte(title[1:1+last], '`') >= 0
}

// definesLink reports whether line i of the paragraph could begin the definition of a link or a footnote:
// these are not shown where they stand, and change links elsewhere.
func (m *markdown) definesLink(i int, line []byte) bool {
	if !bytes.HasPrefix(line, []byte("[")) {
		return false
	}
	if i == 0 { // a label may run over several lines
		return bytes.Contains(m.out[m.para[0].start:], []byte("]:"))
	}
	return bytes.HasPrefix(line, []byte("[^")) && bytes.Contains(line, []byte("]:"))
}

// mayBeTag is a quick look for raw HTML.
func mayBeTag(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '<')
		if i < 0 {
			return false
		}
		if text = text[i+1:]; beginsTag(text) {
			return true
		}
	}
}

// beginsTag reports whether the text behind a < makes it raw HTML, perhaps.
func beginsTag(rest []byte) bool {
	if len(rest) == 0 {
		return false
	}
	c := rest[0] | 0x20
	return c >= 'a' && c <= 'z' || rest[0] == '/' || rest[0] == '!' || rest[0] == '?'
}

// tags returns where in m.out the paragraph has a < that is neither code nor escaped and could begin raw
// HTML, and from unsure on any that could. Code is what is code both in the paragraph as a whole and in
// the line alone, in a table also in the cell: not all programs agree on where a paragraph begins.
func (m *markdown) tags(unsure int) []int {
	text := m.out[m.para[0].start:]
	if bytes.IndexByte(text, '`') < 0 { // no code
		return m.anyTags(m.tagsIn(nil, m.para, false), unsure)
	}
	pieces := [][]span{m.para}
	for i := range m.para {
		if l := m.para[i]; len(m.para) > 1 && bytes.IndexByte(m.out[l.start:l.end], '<') >= 0 {
			pieces = append(pieces, m.para[i:i+1])
		}
	}
	if len(m.rows) > 0 {
		pieces = append(pieces, m.cells()...)
	}
	addresses := hasAddress(text)
	var found []int
	for _, piece := range pieces {
		found = m.tagsIn(found, piece, false)
		if addresses {
			found = m.tagsIn(found, piece, true)
		}
	}
	return m.anyTags(found, unsure)
}

// cells takes the paragraph apart as a table.
func (m *markdown) cells() (cells [][]span) {
	for _, l := range m.para {
		for start := l.start; start <= l.end; {
			end := start
			for end < l.end && (m.out[end] != '|' || end > start && m.out[end-1] == '\\') {
				end++
			}
			cells = append(cells, []span{{start, end}})
			start = end + 1
		}
	}
	return cells
}

// anyTags adds all places from that one on where raw HTML could begin, whatever stands around them.
func (m *markdown) anyTags(found []int, from int) []int {
	for i := from; i < len(m.out); i++ {
		if m.out[i] == '<' && beginsTag(m.out[i+1:]) {
			found = append(found, i)
		}
	}
	return found
}

// autolink is a link that is left alone. Anything else that begins like one is made text: that is safe, and
// the address can still be read.
var autolink = regexp.MustCompile("^<(?:https?://|mailto:)[^\\s<>`|\\\\]*>")

// telling are the bytes at which tagsIn has to look closer.
var telling = [256]bool{'\\': true, '`': true, '<': true, ':': true, 'w': true, 'W': true}

// tagsIn looks through lines that are one text, from left to right as CommonMark does: an escape, a code
// span or a link, whichever begins first, is passed over whole. Some programs take bare addresses for links.
func (m *markdown) tagsIn(found []int, lines []span, addresses bool) []int {
	last := m.lastRuns(lines)
	for i := 0; i < len(lines); i++ {
		for at := lines[i].start; at < lines[i].end; {
			if !telling[m.out[at]] {
				at++
				continue
			}
			rest := m.out[at:lines[i].end]
			switch rest[0] {
			case '\\':
				if len(rest) > 2 && rest[1] == '<' && beginsTag(rest[2:]) && takesBackslash(m.out[lines[i].start:at]) {
					found = append(found, at+1)
				}
				at += min(2, len(rest))
			case '`':
				n := RunLength(rest, '`')
				if last[n] > at {
					i, at = m.closingRun(lines, i, at+n, n)
				} else {
					at += n
				}
			case '<':
				if link := autolink.Find(rest); link != nil {
					at += len(link)
					break
				}
				if beginsTag(rest[1:]) {
					found = append(found, at)
				}
				at++
			case ':', 'w', 'W':
				at++
				if addresses && addressHere(rest) {
					found, at = m.tagsInAddress(found, at, lines[i].end)
				}
			}
		}
	}
	return found
}

// tagsInAddress passes over an address, which what becomes an entity does not end.
func (m *markdown) tagsInAddress(found []int, at, end int) ([]int, int) {
	for ; at < end && m.out[at] != ' ' && m.out[at] != '\t'; at++ {
		if m.out[at] != '<' {
			continue
		}
		if !beginsTag(m.out[at+1 : end]) {
			break
		}
		found = append(found, at)
	}
	return found, at
}

// lastRuns returns where the last run of each number of backticks begins.
func (m *markdown) lastRuns(lines []span) map[int]int {
	var last map[int]int
	for _, l := range lines {
		for at := l.start; at < l.end; {
			next := bytes.IndexByte(m.out[at:l.end], '`')
			if next < 0 {
				break
			}
			at += next
			if last == nil {
				last = map[int]int{}
			}
			n := RunLength(m.out[at:l.end], '`')
			last[n] = at
			at += n
		}
	}
	return last
}

// closingRun returns the place behind the next run of exactly n backticks, which there is.
func (m *markdown) closingRun(lines []span, i, at, n int) (line, behind int) {
	for ; ; i, at = i+1, lines[min(i+1, len(lines)-1)].start {
		for at < lines[i].end {
			run := RunLength(m.out[at:lines[i].end], '`')
			if run == n {
				return i, at + n
			}
			at += max(run, 1)
		}
	}
}
