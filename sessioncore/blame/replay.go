package blame

import (
	"slices"
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

// fragment is a part of the file, or all of it, with the edit of each line.
type fragment struct {
	text  string
	marks []int // the edit of each line, or Nobody; one more than text has newlines
	whole bool  // it is the whole file

	unique   map[string]int // the result of uniqueLines for the text uniqueOf
	uniqueOf string
}

// maxParts bounds the fragments in which a change is sought. An agent that never reads or writes a
// whole file leaves one for each edit.
const maxParts = 32

// maxPlaces bounds the lines with one text among fragments that were not found.
const maxPlaces = 64

// replay is the knowledge about a file after some edits.
//
// An agent that has not read the file leaves a fragment of it. Edit 0 replaces "b" by "B\nC", and edit 1
// replaces "C" by "c":
//
//	after     parts
//	edit 0    text "B\nC", marks 0 0
//	edit 1    text "B\nc", marks 0 1
//
// Lines then looks for the fragment in the file. In "a\nB\nc\n" it stands once, as whole lines. So the
// edits of the lines are Nobody, 0 and 1, all exact. In "B\nx\nc\n" a person has put a line in between. Then
// the texts of single lines decide: 0, Nobody and 1, all inexact.
type replay struct {
	parts []*fragment // the newest last
	// replaced has the lines that gave way to a change by line numbers, and those that a change did not
	// find in their old place. A person may have moved them, so they may stand in the file.
	replaced []*fragment
	// limit bounds the text of a fragment in bytes: a few edits that double a text could fill the memory.
	limit int
}

// limitOf returns the limit for a file and its edits, in bytes.
func limitOf(text string, edits [][]Change) int {
	size := len(text)
	for _, changes := range edits {
		for _, c := range changes {
			size += len(c.Old) + len(c.New)
		}
	}
	return smallText + maxReplayed*size
}

const (
	// smallText is the size of a fragment that is always replayed.
	smallText = 1 << 20
	// maxReplayed is by how much a fragment may be larger than the file and all edits.
	maxReplayed = 16
)

// apply applies a change of an edit: to the whole file; else where the change fits exactly; else to the
// fragment most like its old text; else as a fragment of its own.
func (r *replay) apply(c Change, edit int) {
	if c.Whole {
		r.setWhole(c.New, edit)
		return
	}
	recent := r.recent()
	isDone := r.applyExactly(recent, c, edit)
	if isDone {
		return
	}
	isDone = r.applyToLikest(recent, c, edit)
	if isDone {
		return
	}
	r.addPart(c, edit)
}

// setWhole makes a text that an edit wrote the whole file. The same text again changes nothing.
func (r *replay) setWhole(text string, edit int) {
	if r.isWhole(text) {
		return
	}
	marks := marksOf(text, edit)
	if endsLine(text) {
		marks[len(marks)-1] = Nobody // behind the last newline
	}
	r.parts = []*fragment{{text: text, marks: marks, whole: true}}
	r.replaced = nil
}

// applyExactly applies a change to the first of recent that has its old text, or all lines with its
// numbers. It reports whether there is one.
func (r *replay) applyExactly(recent []*fragment, c Change, edit int) bool {
	for _, p := range recent {
		isReplaced := p.replace(c, edit, r.limit)
		if isReplaced {
			return true
		}
		replaced, isNumbered := p.replaceNumbered(c, edit)
		if isNumbered {
			r.replaced = append(r.replaced, replaced)
			return true
		}
	}
	return false
}

// applyToLikest applies a change to the first of recent with most lines of its old text, after it has put
// that text in their place: a person has changed the file. It reports whether any has such a line.
func (r *replay) applyToLikest(recent []*fragment, c Change, edit int) bool {
	var likest *fragment
	var most overlap
	old := strings.Split(c.Old, "\n")
	for _, p := range recent {
		o := p.overlap(old)
		if o.equal > most.equal {
			likest = p
			most = o
		}
	}
	if likest == nil {
		return false
	}
	replaced := likest.learn(c.Old, most)
	r.replaced = append(r.replaced, replaced)
	likest.replace(c, edit, r.limit)
	return true
}

// addPart adds a fragment with the new text of a change of unknown lines.
func (r *replay) addPart(c Change, edit int) {
	if c.Old == "" && c.New == "" {
		return
	}
	if c.Old == "" {
		r.parts = append(r.parts, &fragment{text: c.New, marks: marksOf(c.New, edit)})
		return
	}
	// Lines that Old and New share are nobody's.
	p := &fragment{text: c.Old, marks: marksOf(c.Old, Nobody)}
	p.replace(c, edit, r.limit)
	r.parts = append(r.parts, p)
}

// isWhole reports whether the file is known to have a text, and no other.
func (r *replay) isWhole(text string) bool {
	return len(r.parts) == 1 && r.parts[0].whole && r.parts[0].text == text
}

// recent returns the fragments that a change may be in, the newest first: the last maxParts, and a
// whole file.
func (r *replay) recent() []*fragment {
	recent := slices.Clone(r.parts[max(0, len(r.parts)-maxParts):])
	slices.Reverse(recent)
	if len(r.parts) > maxParts && r.parts[0].whole {
		recent = append(recent, r.parts[0])
	}
	return recent
}

// marksOf returns the marks of a text, one edit for all lines.
func marksOf(text string, edit int) []int {
	return repeated(edit, strings.Count(text, "\n")+1)
}

// repeated returns n marks of an edit.
func repeated(edit, n int) []int {
	marks := make([]int, n)
	for i := range marks {
		marks[i] = edit
	}
	return marks
}

// replaceNumbered replaces the lines From to To of a whole file, which count from 1, by New, and returns
// them. To is From-1 where the change only inserts. ok is false if the change has no numbers, or the
// fragment no such lines.
func (p *fragment) replaceNumbered(c Change, edit int) (replaced *fragment, ok bool) {
	if c.From == 0 || !p.whole {
		return nil, false
	}
	lines := strings.SplitAfter(p.text, "\n")
	count := len(lines) - 1 // the last of lines is the text behind the last newline
	if c.From == atEnd {
		c.From = count + 1
		c.To = count
	}
	isFromIn := c.From >= 1 && c.From <= count+1
	isToIn := c.To >= c.From-1 && c.To <= count
	if !isFromIn || !isToIn {
		return nil, false
	}
	start := c.From - 1
	end := c.To
	replaced = &fragment{
		text:  strings.Join(lines[start:end], ""),
		marks: slices.Clone(p.marks[start : end+1]),
	}
	replaced.marks[end-start] = Nobody // behind the last newline
	newMarks := repeated(edit, strings.Count(c.New, "\n"))
	p.text = strings.Join(lines[:start], "") + c.New + strings.Join(lines[end:], "")
	p.marks = slices.Concat(p.marks[:start], newMarks, p.marks[end:])
	return replaced, true
}

// replace replaces Old in the fragment by New, and reports whether Old is there. If the text would have
// more than limit bytes, the fragment becomes empty.
func (p *fragment) replace(c Change, edit, limit int) bool {
	if c.Old == "" {
		return false
	}
	at := indexOf(p.text, c)
	if at < 0 {
		return false
	}
	r := newReplacement(p, c, edit)
	for at >= 0 && len(r.newText)+len(r.open) <= limit {
		r.replaceAt(at)
		if !c.All {
			break
		}
		at = indexOf(p.text[r.rest:], c)
		if at >= 0 {
			at += r.rest
		}
	}
	r.finish()
	if len(p.text) > limit {
		*p = fragment{marks: []int{Nobody}}
	}
	return true
}

// indexOf returns the offset of Old of a change in a text, -1 if it is not there. If the change is one of
// whole lines, only such a place counts.
func indexOf(text string, c Change) int {
	from := 0
	for {
		at := strings.Index(text[from:], c.Old)
		if at < 0 {
			return -1
		}
		at += from
		end := at + len(c.Old)
		isLineStart := at == 0 || text[at-1] == '\n'
		isLineEnd := end == len(text) || text[end] == '\n'
		areLines := isLineStart && isLineEnd
		if areLines || !c.Lines {
			return at
		}
		from = at + 1
	}
}

// overlap is the part of a text that comes from a fragment, and that a person may have changed meanwhile.
// The text's lines from first to last stand in place of the fragment's lines from start up to end.
type overlap struct {
	first int
	last  int
	start int
	end   int
	equal int // lines that both have; the fragment has each only once
}

// uniqueLines returns the index of each line that has a word and that the fragment has once, and -1 for
// its other lines.
func (p *fragment) uniqueLines() map[string]int {
	if p.unique != nil && p.uniqueOf == p.text {
		return p.unique
	}
	at := map[string]int{}
	for i, line := range strings.Split(p.text, "\n") {
		_, twice := at[line]
		if twice || !hasWord(line) {
			at[line] = -1
		} else {
			at[line] = i
		}
	}
	p.unique = at
	p.uniqueOf = p.text
	return at
}

// overlap finds lines of a text in the fragment, in the same order and not too far from each other.
func (p *fragment) overlap(old []string) (o overlap) {
	unique := p.uniqueLines()
	for i, line := range old {
		j, isKnown := unique[line]
		if !isKnown || j < 0 {
			continue
		}
		isNext := j >= o.end && j <= o.end+maxInserted
		if o.equal > 0 && !isNext {
			continue
		}
		if o.equal == 0 {
			o.first = i
			o.start = j
		}
		o.equal++
		o.last = i
		o.end = j + 1
	}
	return o
}

// learn puts a text into the fragment, in place of the lines of an overlap and those around it that are
// alike. It returns the lines that the text replaces. Lines that both have keep their edits.
func (p *fragment) learn(text string, o overlap) (replaced *fragment) {
	known := strings.Split(p.text, "\n")
	old := strings.Split(text, "\n")
	first := o.first
	start := o.start
	for first > 0 && start > 0 && alike(known[start-1], old[first-1]) {
		first--
		start--
	}
	next := o.last + 1
	end := o.end
	for next < len(old) && end < len(known) && alike(known[end], old[next]) {
		next++
		end++
	}
	replaced = &fragment{
		text:  strings.Join(known[start:end], "\n"),
		marks: slices.Clone(p.marks[start:end]),
	}
	marks := repeated(Nobody, len(old))
	view.EachCommon(known[start:end], old, func(i, j int) {
		marks[j] = replaced.marks[i]
		replaced.marks[i] = Nobody
	})
	p.text = strings.Join(slices.Concat(known[:start], old, known[end:]), "\n")
	p.marks = slices.Concat(p.marks[:start], marks, p.marks[end:])
	return replaced
}

// maxInserted is the most lines that a fragment may have between two lines of Old.
const maxInserted = 20

// alike reports whether one line may have been made of the other: half of the shorter one begins both.
// Only another blank line is like a blank one.
func alike(a, b string) bool {
	a = strings.TrimSpace(a)
	b = strings.TrimSpace(b)
	if a == b {
		return true
	}
	shorter := min(len(a), len(b))
	if shorter == 0 {
		return false
	}
	equal := 0
	for equal < shorter && a[equal] == b[equal] {
		equal++
	}
	return 2*equal >= shorter
}

// Lines returns the edit of each line of a file with this text. edits has the changes of each edit, in the
// order of time. An edit without changes changes nothing.
func Lines(text string, edits [][]Change) []Line {
	r := &replay{limit: limitOf(text, edits)}
	for n, changes := range edits {
		for _, c := range changes {
			r.apply(c, n)
		}
	}
	file := strings.Split(text, "\n")
	lines := make([]Line, len(file))
	for i := range lines {
		lines[i].Edit = Nobody
	}
	lost := r.replaced
	ambiguous := map[int]int{}
	for _, p := range r.parts {
		if p.whole {
			p.align(file, lines, ambiguous)
			lost = append(lost, p)
			continue
		}
		isLocated := p.locate(text, lines)
		if !isLocated {
			lost = append(lost, p)
		}
	}
	markByText(file, lines, lost, ambiguous)
	markBetween(file, lines)
	last := len(file) - 1
	if file[last] == "" { // behind the last newline there is no line
		lines = lines[:last]
	}
	return lines
}

// align marks the lines of the file that the fragment, a whole file, has in the same order, and takes
// their marks from the fragment. A line without an equal neighbour that the file has several times may be
// any of these: it keeps its mark in the fragment, and ambiguous gets its edit, by its index in the file.
func (p *fragment) align(file []string, lines []Line, ambiguous map[int]int) {
	count := map[string]int{}
	file = trimmed(file)
	for _, line := range file {
		count[line]++
	}
	const none = -2
	known := repeated(none, len(file)) // for each line of the file, the index of the same line in the fragment
	view.EachCommon(trimmed(strings.Split(p.text, "\n")), file, func(i, j int) {
		known[j] = i
	})
	for j, i := range known {
		if i == none || p.marks[i] == Nobody {
			continue
		}
		followsEqual := j > 0 && known[j-1] == i-1
		leadsEqual := j+1 < len(known) && known[j+1] == i+1
		if !followsEqual && !leadsEqual && count[file[j]] > 1 {
			ambiguous[j] = p.marks[i]
			continue
		}
		lines[j] = Line{Edit: p.marks[i], Exact: true}
		p.marks[i] = Nobody
	}
}

// locate marks the lines of the fragment in the file if it stands there exactly once, and reports whether
// it does.
func (p *fragment) locate(text string, lines []Line) bool {
	if strings.TrimSpace(p.text) == "" {
		return false
	}
	at := strings.Index(text, p.text)
	if at < 0 {
		return false
	}
	isRepeated := strings.Contains(text[at+1:], p.text)
	if isRepeated {
		return false
	}
	end := at + len(p.text)
	lineStart := strings.LastIndexByte(text[:at], '\n') + 1
	isLineStart := strings.TrimSpace(text[lineStart:at]) == ""
	isLineEnd := end == len(text) || text[end] == '\n'
	isInLine := len(p.marks) == 1 && !isLineStart
	// If the last line goes on, somebody else may have written it. The edit of a part in the middle of a
	// line has no whole line, and counts nevertheless.
	isLastOwn := isLineEnd || isInLine
	first := strings.Count(text[:at], "\n")
	marks := p.marks
	if !isLastOwn {
		marks = marks[:len(marks)-1]
	}
	for i, mark := range marks {
		if mark != Nobody {
			lines[first+i] = Line{Edit: mark, Exact: true}
		}
	}
	return true
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
// they are. ambiguous has the edits of lines that align found without a neighbour, by their index.
func markByText(file []string, lines []Line, lost []*fragment, ambiguous map[int]int) {
	index := newLineIndex(lost)
	file = trimmed(file)
	for i, line := range file {
		if lines[i].Edit != Nobody {
			continue
		}
		best := Nobody
		mostEqual := -1
		edit, isAmbiguous := ambiguous[i]
		switch {
		case isAmbiguous:
			best = edit
			mostEqual = 1
		case !hasWord(line):
			mostEqual = 1 // such a line is everywhere, so that a neighbour must be equal, too
		}
		for _, place := range index.places[line] { // the newest last, which wins
			equal := index.equalNeighbours(place, file, i)
			if equal >= mostEqual {
				best = lost[place.part].marks[place.line]
				mostEqual = equal
			}
		}
		if best != Nobody {
			lines[i] = Line{Edit: best}
		}
	}
}

// lineIndex finds lines of fragments by their text.
type lineIndex struct {
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
	if i < 0 || i >= len(lines) {
		return "\x00"
	}
	return lines[i]
}

// markBetween gives lines without a letter or digit the edit that both lines around them have.
func markBetween(file []string, lines []Line) {
	for i := 1; i+1 < len(lines); i++ {
		if lines[i].Edit != Nobody || hasWord(file[i]) {
			continue
		}
		before := lines[i-1].Edit
		after := lines[i+1].Edit
		if before == after {
			lines[i] = Line{Edit: before}
		}
	}
}

// hasWord reports whether a line has a letter or a digit.
func hasWord(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}
