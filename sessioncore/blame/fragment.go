package blame

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/view"
)

// fragment is a part of the file, or all of it, with the edit of each line.
type fragment struct {
	text  string
	marks []int // the edit of each line, or Nobody; one more than text has newlines
	whole bool  // it is the whole file

	unique   map[string]int // the result of uniqueLines for the text uniqueOf
	uniqueOf string
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
// them as a fragment. To is From-1 where the change only inserts. ok is false, and nothing changes, if the change
// has no numbers, or the fragment no such lines.
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

// replace replaces Old in the fragment by New, at its first place or with All at each, and reports whether Old is
// there. If the text would have more than limit bytes, the fragment becomes empty.
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

// indexOf returns the offset of the first place of a change's Old in a text, -1 if it is not there. If the change
// is one of whole lines, only such a place counts.
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
	index := map[string]int{}
	for i, line := range strings.Split(p.text, "\n") {
		_, isRepeated := index[line]
		if isRepeated || !hasWord(line) {
			index[line] = -1
		} else {
			index[line] = i
		}
	}
	p.unique = index
	p.uniqueOf = p.text
	return index
}

// overlap finds lines of a text in the fragment, in the same order and not too far from each other. equal is 0 if
// there are none.
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
// alike. It returns the lines that the text replaces, with the edits of those that are lost. Lines that both have
// keep their edits in the fragment.
func (p *fragment) learn(text string, o overlap) (replaced *fragment) {
	known := strings.Split(p.text, "\n")
	old := strings.Split(text, "\n")
	start, end := o.widened(known, old)
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

// widened returns the range of the fragment's lines, known, that the text's lines, old, stand in place of: the
// overlap's, and on both sides those that are alike.
func (o *overlap) widened(known, old []string) (start, end int) {
	start = o.start
	for first := o.first; first > 0 && start > 0; first-- {
		if !alike(known[start-1], old[first-1]) {
			break
		}
		start--
	}
	end = o.end
	for next := o.last + 1; next < len(old) && end < len(known); next++ {
		if !alike(known[end], old[next]) {
			break
		}
		end++
	}
	return start, end
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
