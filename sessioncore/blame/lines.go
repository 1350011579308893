package blame

import (
	"strings"
	"unicode"

	"sessionfs/sessioncore/view"
)

// Line is a line of a file and the edit that put it there.
type Line struct {
	Edit  int  // the number of the edit, or Nobody
	Exact bool // by the replay, not by the text of the line alone
}

// Nobody is the Edit of a line that no agent wrote.
const Nobody = -1

// Lines returns the edit of each line of a file with this text. edits has the changes of each edit, in the
// order of time. An edit without changes changes nothing. The text behind the last newline is a line unless it is
// empty.
func Lines(text string, edits [][]Change) []Line {
	r := &replay{limit: limitOf(text, edits)}
	for n, changes := range edits {
		for _, c := range changes {
			r.apply(c, n)
		}
	}
	m := newMarking(text)
	lost := r.replaced
	for _, p := range r.parts {
		if p.whole {
			m.align(p)
			lost = append(lost, p) // a person may have moved its other lines
			continue
		}
		isLocated := m.locate(p)
		if !isLocated {
			lost = append(lost, p)
		}
	}
	m.markByText(lost)
	m.markBetween()
	last := len(m.file) - 1
	if m.file[last] == "" {
		return m.lines[:last]
	}
	return m.lines
}

// marking marks the lines of a file with the edits of fragments.
type marking struct {
	text    string
	file    []string // the lines of text
	trimmed []string // file without white space at the ends of lines
	lines   []Line   // the result, by the index of the line in file
	// ambiguous has the edits of lines that align found, but that may be other lines with the same text, by
	// their index in file.
	ambiguous map[int]int
}

// newMarking returns a marking of a file, with each line Nobody's.
func newMarking(text string) *marking {
	file := strings.Split(text, "\n")
	lines := make([]Line, len(file))
	for i := range lines {
		lines[i].Edit = Nobody
	}
	return &marking{
		text:      text,
		file:      file,
		trimmed:   trimmed(file),
		lines:     lines,
		ambiguous: map[int]int{},
	}
}

// align marks the lines of the file that the fragment, a whole file, has in the same order, and takes
// their marks from the fragment. A line without an equal neighbour that the file has several times may be
// any of these: it keeps its mark in the fragment, and becomes ambiguous.
func (m *marking) align(p *fragment) {
	count := map[string]int{}
	for _, line := range m.trimmed {
		count[line]++
	}
	const none = -2
	known := repeated(none, len(m.file)) // for each line of the file, the index of the same line in the fragment
	inFragment := trimmed(strings.Split(p.text, "\n"))
	view.EachCommon(inFragment, m.trimmed, func(i, j int) {
		known[j] = i
	})
	for j, i := range known {
		if i == none || p.marks[i] == Nobody {
			continue
		}
		followsEqual := j > 0 && known[j-1] == i-1
		leadsEqual := j+1 < len(known) && known[j+1] == i+1
		hasNeighbour := followsEqual || leadsEqual
		isRepeated := count[m.trimmed[j]] > 1
		if isRepeated && !hasNeighbour {
			m.ambiguous[j] = p.marks[i]
			continue
		}
		m.lines[j] = Line{Edit: p.marks[i], Exact: true}
		p.marks[i] = Nobody
	}
}

// locate marks the lines of the fragment in the file if it stands there exactly once, and reports whether
// it does.
func (m *marking) locate(p *fragment) bool {
	if strings.TrimSpace(p.text) == "" { // blank lines are everywhere
		return false
	}
	at := strings.Index(m.text, p.text)
	if at < 0 {
		return false
	}
	isRepeated := strings.Contains(m.text[at+1:], p.text)
	if isRepeated {
		return false
	}
	marks := p.marks
	if !m.ownsLastLine(p, at) {
		marks = marks[:len(marks)-1]
	}
	first := strings.Count(m.text[:at], "\n")
	for i, mark := range marks {
		if mark != Nobody {
			m.lines[first+i] = Line{Edit: mark, Exact: true}
		}
	}
	return true
}

// ownsLastLine reports whether the last line of a fragment, which stands in the file at an offset, is the one of
// the file. If the line goes on, somebody else may have written it. The edit of a part in the middle of a line has
// no whole line, and counts nevertheless.
func (m *marking) ownsLastLine(p *fragment, at int) bool {
	end := at + len(p.text)
	isLineEnd := end == len(m.text) || m.text[end] == '\n'
	if isLineEnd {
		return true
	}
	lineStart := strings.LastIndexByte(m.text[:at], '\n') + 1
	isLineStart := strings.TrimSpace(m.text[lineStart:at]) == ""
	isInLine := len(p.marks) == 1 && !isLineStart
	return isInLine
}

// trimmed returns the lines without white space at their ends.
func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	return out
}

// markByText marks lines of nobody by equal lines of lost, the fragments that do not stand in the file as
// they are.
func (m *marking) markByText(lost []*fragment) {
	index := newLineIndex(lost)
	for i := range m.trimmed {
		if m.lines[i].Edit != Nobody {
			continue
		}
		edit := m.likestEdit(i, index)
		if edit != Nobody {
			m.lines[i] = Line{Edit: edit}
		}
	}
}

// likestEdit returns the edit of the line with the same text as line i of the file, and most of its neighbours;
// of several the newest. It is Nobody for none.
func (m *marking) likestEdit(i int, index *lineIndex) int {
	line := m.trimmed[i]
	best := Nobody
	mostEqual := 0
	edit, isAmbiguous := m.ambiguous[i]
	switch {
	case isAmbiguous:
		best = edit
		mostEqual = 1
	case !hasWord(line):
		mostEqual = 1 // such a line is everywhere, so that a neighbour must be equal, too
	}
	for _, place := range index.places[line] { // the newest last, which wins
		equal := index.equalNeighbours(place, m.trimmed, i)
		if equal >= mostEqual {
			best = index.editAt(place)
			mostEqual = equal
		}
	}
	return best
}

// lineIndex finds lines of fragments by their text.
type lineIndex struct {
	parts  []*fragment
	texts  [][]string             // the lines of each fragment, trimmed
	places map[string][]linePlace // the places of a line with an edit, the newest last
}

// linePlace is a line of a fragment.
type linePlace struct {
	part int
	line int
}

// newLineIndex returns an index of the lines that have edits. Of equal lines it keeps the newest ones, at
// least maxPlaces.
func newLineIndex(parts []*fragment) *lineIndex {
	x := &lineIndex{
		parts:  parts,
		texts:  make([][]string, len(parts)),
		places: map[string][]linePlace{},
	}
	for n, p := range parts {
		x.texts[n] = trimmed(strings.Split(p.text, "\n"))
		for i, line := range x.texts[n] {
			if p.marks[i] != Nobody {
				x.add(line, linePlace{part: n, line: i})
			}
		}
	}
	return x
}

// add adds a place of a line. At twice maxPlaces it drops the older half, so that an addition costs the same
// however many there are.
func (x *lineIndex) add(line string, place linePlace) {
	places := append(x.places[line], place)
	if len(places) > 2*maxPlaces {
		newest := places[len(places)-maxPlaces:]
		places = append(places[:0], newest...)
	}
	x.places[line] = places
}

// editAt returns the edit of the line at a place.
func (x *lineIndex) editAt(place linePlace) int { return x.parts[place.part].marks[place.line] }

// equalNeighbours returns how many of the lines before and behind a place are equal to those around line i
// of the file: 0 to 2.
func (x *lineIndex) equalNeighbours(place linePlace, file []string, i int) int {
	text := x.texts[place.part]
	count := 0
	if lineAt(file, i-1) == lineAt(text, place.line-1) {
		count++
	}
	if lineAt(file, i+1) == lineAt(text, place.line+1) {
		count++
	}
	return count
}

// lineAt returns a line, or, before the first and behind the last one, a text that no line has. So the first
// line of one text has the same neighbour as the first line of another.
func lineAt(lines []string, i int) string {
	const noLine = "\x00"
	if i < 0 || i >= len(lines) {
		return noLine
	}
	return lines[i]
}

// markBetween gives lines of nobody without a letter or digit the edit that both lines around them have.
func (m *marking) markBetween() {
	for i := 1; i+1 < len(m.lines); i++ {
		if m.lines[i].Edit != Nobody || hasWord(m.file[i]) {
			continue
		}
		before := m.lines[i-1].Edit
		after := m.lines[i+1].Edit
		if before == after {
			m.lines[i] = Line{Edit: before}
		}
	}
}

// hasWord reports whether a line has a letter or a digit.
func hasWord(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}
