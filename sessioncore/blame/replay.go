package blame

import (
	"slices"
	"strings"
	"unicode"

	"sessionfs/sessioncore/view"
)

// Line is a line of a file and the edit that put it there.
type Line struct {
	Edit  int  // its number; Nobody where no agent wrote the line
	Exact bool // the replay says so, not the text alone
}

// Nobody is the FileEdit of a line that no agent wrote.
const Nobody = -1

// fragment is a part of the file, or all of it, with the edit of each line.
type fragment struct {
	text  string
	marks []int // of the lines between the newlines of text; one more than there are newlines
	whole bool  // it is the whole file

	unique   map[string]int // uniqueLines of the text uniqueOf
	uniqueOf string
}

// maxParts bounds the fragments that a change is looked for in. An agent that never reads or writes a
// whole file leaves one for each edit.
const maxParts = 32

// maxPlaces bounds the lines with one text among fragments that were not found.
const maxPlaces = 64

// replay is what is known of a file after some edits.
type replay struct {
	parts []*fragment // the newest last
	// replaced are the lines that a number names, and those that a change does not find where they
	// were. A person may have moved them, and they may stand in the file.
	replaced []*fragment
	// limit bounds the text of a fragment: a few edits that double a text could fill the memory.
	limit int
}

// limitOf returns the limit for a file and its edits.
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

// apply applies a change of an edit.
func (r *replay) apply(c Change, edit int) {
	if c.Whole && r.isWhole(c.New) {
		return // nothing changes
	}
	if c.Whole {
		marks := repeated(edit, strings.Count(c.New, "\n")+1)
		if endsLine(c.New) {
			marks[len(marks)-1] = Nobody // behind the last newline
		}
		r.parts = []*fragment{{text: c.New, marks: marks, whole: true}}
		r.replaced = nil
		return
	}
	recent := r.recent()
	for _, p := range recent {
		if p.replace(c, edit, r.limit) {
			return
		}
		if gone, ok := p.put(c, edit); ok {
			r.replaced = append(r.replaced, gone)
			return
		}
	}
	var known *fragment
	var most overlap
	old := strings.Split(c.Old, "\n")
	for _, p := range recent {
		o := p.overlap(old)
		if o.lines > most.lines {
			known = p
			most = o
		}
	}
	if known != nil {
		r.replaced = append(r.replaced, known.learn(c.Old, most))
		known.replace(c, edit, r.limit)
		return
	}
	if c.Old == "" && c.New == "" {
		return
	}
	p := &fragment{text: c.Old, marks: repeated(Nobody, strings.Count(c.Old, "\n")+1)}
	if c.Old == "" {
		p.text = c.New
		p.marks = repeated(edit, strings.Count(c.New, "\n")+1)
	} else {
		p.replace(c, edit, r.limit)
	}
	r.parts = append(r.parts, p)
}

// isWhole reports whether a text is known to be that of the file.
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

func repeated(edit, n int) []int {
	marks := make([]int, n)
	for i := range marks {
		marks[i] = edit
	}
	return marks
}

// put replaces lines by their numbers, and returns them and whether it does.
func (p *fragment) put(c Change, edit int) (gone *fragment, ok bool) {
	if c.From == 0 || !p.whole {
		return nil, false
	}
	lines := strings.SplitAfter(p.text, "\n")
	last := len(lines) - 1 // what is behind the last newline
	if c.From == atEnd {
		c.From = last + 1
		c.To = last
	}
	if c.From < 1 || c.From > last+1 || c.To > last || c.To < c.From-1 {
		return nil, false
	}
	gone = &fragment{text: strings.Join(lines[c.From-1:c.To], ""), marks: slices.Clone(p.marks[c.From-1 : c.To+1])}
	gone.marks[len(gone.marks)-1] = Nobody
	p.text = strings.Join(lines[:c.From-1], "") + c.New + strings.Join(lines[c.To:], "")
	p.marks = slices.Concat(p.marks[:c.From-1], repeated(edit, strings.Count(c.New, "\n")), p.marks[c.To:])
	return gone, true
}

// replace replaces Old in the fragment, and reports whether it is there. A text of more than limit
// bytes is forgotten.
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

// indexOf returns where Old of a change is in a text, -1 if it is not there.
func indexOf(text string, c Change) int {
	from := 0
	for {
		at := strings.Index(text[from:], c.Old)
		if at < 0 {
			return -1
		}
		at += from
		end := at + len(c.Old)
		if !c.Lines || (at == 0 || text[at-1] == '\n') && (end == len(text) || text[end] == '\n') {
			return at
		}
		from = at + 1
	}
}

// overlap is the part of a text that comes from a fragment, which a person may have changed: its
// lines first to last stand in place of those from start up to end, and some are the same.
type overlap struct {
	first, last, start, end int
	lines                   int // how many are, each once in the fragment
}

// uniqueLines returns the numbers of the lines with a word that the fragment has once, and -1 for
// others.
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

// overlap looks for the lines of a text.
func (p *fragment) overlap(old []string) (o overlap) {
	at := p.uniqueLines()
	for i, line := range old {
		j, found := at[line]
		if !found || j < 0 || o.lines > 0 && (j < o.end || j > o.end+maxInserted) {
			continue
		}
		o.lines++
		if o.lines == 1 {
			o.first = i
			o.start = j
		}
		o.last = i
		o.end = j + 1
	}
	return o
}

// learn makes a text a part of the fragment, and returns the lines that gave way to it.
func (p *fragment) learn(text string, o overlap) (gone *fragment) {
	known := strings.Split(p.text, "\n")
	old := strings.Split(text, "\n")
	first := o.first
	last := o.last
	start := o.start
	end := o.end
	for ; first > 0 && start > 0 && alike(known[start-1], old[first-1]); first-- {
		start--
	}
	for ; last+1 < len(old) && end < len(known) && alike(known[end], old[last+1]); last++ {
		end++
	}
	gone = &fragment{text: strings.Join(known[start:end], "\n"), marks: slices.Clone(p.marks[start:end])}
	marks := repeated(Nobody, len(old))
	view.EachCommon(known[start:end], old, func(i, j int) {
		marks[j] = gone.marks[i]
		gone.marks[i] = Nobody
	})
	p.text = strings.Join(slices.Concat(known[:start], old, known[end:]), "\n")
	p.marks = slices.Concat(p.marks[:start], marks, p.marks[end:])
	return gone
}

// maxInserted is how many lines a person may have removed between two lines of Old.
const maxInserted = 20

// alike reports whether one line may have been made of the other.
func alike(a, b string) bool {
	a = strings.TrimSpace(a)
	b = strings.TrimSpace(b)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return a == b || 2*n >= max(min(len(a), len(b)), 1)
}

// Lines returns the edit of each line of a file, by the changes of each edit in the order of time.
// An edit without changes changes nothing.
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
	alone := map[int]int{}
	for _, p := range r.parts {
		switch {
		case p.whole:
			p.align(file, lines, alone)
			lost = append(lost, p)
		case !p.locate(text, lines):
			lost = append(lost, p)
		}
	}
	byText(file, lines, lost, alone)
	follow(file, lines)
	if n := len(lines); n > 0 && file[n-1] == "" { // behind the last newline there is no line
		lines = lines[:n-1]
	}
	return lines
}

// align marks the lines of the file that the fragment, a whole file, has in the same order. These
// have no marks in it any more. Where a line that the file has several times stands alone among
// others, any of them could be meant: alone has its edit instead.
func (p *fragment) align(file []string, lines []Line, alone map[int]int) {
	count := map[string]int{}
	file = trimmed(file)
	for _, line := range file {
		count[line]++
	}
	const none = -2
	known := repeated(none, len(file)) // the same line of the fragment
	view.EachCommon(trimmed(strings.Split(p.text, "\n")), file, func(i, j int) { known[j] = i })
	for j, i := range known {
		follows := j > 0 && known[j-1] == i-1
		leads := j+1 < len(known) && known[j+1] == i+1
		switch {
		case i == none || p.marks[i] == Nobody:
			continue
		case follows || leads || count[file[j]] == 1:
			lines[j] = Line{p.marks[i], true}
		default:
			alone[j] = p.marks[i]
			continue
		}
		p.marks[i] = Nobody
	}
}

// locate marks the lines of the file where the fragment is in it once, and reports whether it is.
func (p *fragment) locate(text string, lines []Line) bool {
	at := strings.Index(text, p.text)
	if at < 0 || strings.TrimSpace(p.text) == "" || strings.Contains(text[at+1:], p.text) {
		return false
	}
	first := strings.Count(text[:at], "\n")
	end := at + len(p.text)
	begins := strings.TrimSpace(text[strings.LastIndexByte(text[:at], '\n')+1:at]) == ""
	ends := end == len(text) || text[end] == '\n'
	for i, mark := range p.marks {
		isFirst := i == 0
		isLast := i == len(p.marks)-1
		// Behind a whole line somebody else may have written on. Within a line an edit has no whole
		// ones.
		if mark != Nobody && (ends || !isLast || isFirst && !begins) {
			lines[first+i] = Line{mark, true}
		}
	}
	return true
}

func trimmed(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = strings.TrimRightFunc(line, unicode.IsSpace)
	}
	return out
}

// byText marks lines of nobody by the text of fragments that were not found: that of which a line
// beside agrees too, else that in alone, else the newest.
func byText(file []string, lines []Line, lost []*fragment, alone map[int]int) {
	type place struct{ part, line int }
	places := map[string][]place{}
	texts := make([][]string, len(lost))
	for n, p := range lost {
		texts[n] = trimmed(strings.Split(p.text, "\n"))
		for i, line := range texts[n] {
			if p.marks[i] != Nobody {
				places[line] = append(places[line], place{n, i})
			}
			if of := places[line]; len(of) > 2*maxPlaces { // the newest are the last
				places[line] = append(of[:0], of[len(of)-maxPlaces:]...)
			}
		}
	}
	file = trimmed(file)
	at := func(list []string, i int) string {
		if i < 0 || i >= len(list) {
			return "\x00"
		}
		return list[i]
	}
	for i, line := range file {
		if lines[i].Edit != Nobody {
			continue
		}
		best := Nobody
		agrees := -1
		if edit, is := alone[i]; is {
			best = edit
			agrees = 1
		} else if !hasWord(line) {
			agrees = 1 // it is everywhere
		}
		for _, p := range places[line] { // the newest last
			n := 0
			for _, beside := range []int{-1, 1} {
				if at(file, i+beside) == at(texts[p.part], p.line+beside) {
					n++
				}
			}
			if n >= agrees {
				best = lost[p.part].marks[p.line]
				agrees = n
			}
		}
		if best != Nobody {
			lines[i] = Line{best, false}
		}
	}
}

// follow gives lines without a letter or digit the edit that the lines around them have.
func follow(file []string, lines []Line) {
	for i := 1; i+1 < len(lines); i++ {
		if lines[i].Edit == Nobody && !hasWord(file[i]) && lines[i+1].Edit == lines[i-1].Edit {
			lines[i] = Line{lines[i-1].Edit, false}
		}
	}
}

func hasWord(line string) bool {
	return strings.ContainsFunc(line, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
}
