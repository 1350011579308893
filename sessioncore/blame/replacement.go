package blame

import (
	"strings"

	"sessionfs/sessioncore/view"
)

// replacement builds a fragment with all places of Old replaced, from the first one to the last. It
// builds the text and the marks once, so that a place costs its own lines and no more.
//
// A place opens its lines. The next one continues them if it begins in the last of these. With "a" to
// "b" in "xaya\nz" the first place opens the line "xaya" and makes it "xb", the second one continues it to
// "xbyb", and close compares "xaya" with "xbyb". Lines that are the same before and after keep their marks.
type replacement struct {
	*fragment // the fragment before the replacement; finish changes it
	change    Change
	edit      int
	// eachAlone says that the lines of a place are compared alone, also if the next place begins in
	// the last of them: that becomes the carried line. Otherwise a list of lines that all end with a
	// new newline would be compared as one, and differ too much.
	eachAlone bool

	newText  []byte // the new text up to the first line that is open or unread
	newMarks []int  // the marks of newText's lines
	from     int    // the offset in text of that line, or of its part behind carried
	line     int    // the index of that line

	isCarry bool   // that line begins with carried
	carried string // the new beginning of that line, from a place that close has compared
	mark    int    // the mark of carried

	isOpen bool
	open   []byte // the new text of the open lines, up to rest
	rest   int    // the offset in text of the end of the last place
	end    int    // the offset in text of the end of the line with rest, -1 before the first place
}

// newReplacement returns a replacement in a fragment of a change by an edit. No place is replaced yet.
func newReplacement(p *fragment, c Change, edit int) *replacement {
	eachAlone := strings.Contains(c.Old, "\n") && strings.Contains(c.New, "\n")
	size := len(p.text) + len(c.New)
	return &replacement{
		fragment:  p,
		change:    c,
		edit:      edit,
		eachAlone: eachAlone,
		newText:   make([]byte, 0, size),
		end:       -1,
	}
}

// replaceAt replaces Old at an offset of text, which is not below rest: places are replaced in their order.
func (r *replacement) replaceAt(at int) {
	isSameLine := at <= r.end
	goesOn := isSameLine && !r.eachAlone
	if r.isOpen && !goesOn {
		r.close(isSameLine)
	}
	if !r.isOpen {
		r.skipTo(at)
	}
	r.open = append(r.open, r.text[r.rest:at]...)
	r.open = append(r.open, r.change.New...)
	r.rest = at + len(r.change.Old)
	if r.rest <= r.end { // Old ended in the same line
		return
	}
	r.end = len(r.text)
	size := strings.IndexByte(r.text[r.rest:], '\n')
	if size >= 0 {
		r.end = r.rest + size
	}
}

// skipTo copies the lines before the one with an offset of text, and opens that line.
func (r *replacement) skipTo(at int) {
	start := r.from + strings.LastIndexByte(r.text[r.from:at], '\n') + 1
	skipped := r.text[r.from:start]
	line := r.line + strings.Count(skipped, "\n")
	r.newText = append(r.newText, skipped...)
	r.newMarks = append(r.newMarks, r.marks[r.line:line]...)
	r.from = start
	r.line = line
	r.rest = start
	r.isOpen = true
	r.open = append(r.open[:0], r.carried...)
}

// close compares the open lines with those that they replace, and ends them. With carry the next place is in
// the last of them: then that line stays unread, and its new beginning becomes carried.
func (r *replacement) close(carry bool) {
	tail := r.text[r.rest:r.end]
	before := strings.Split(r.carried+r.text[r.from:r.end], "\n")
	after := strings.Split(string(r.open)+tail, "\n")
	marks := repeated(r.edit, len(after))
	view.EachCommon(before, after, func(i, j int) {
		marks[j] = r.markOf(i)
	})
	r.isOpen = false
	if carry {
		r.line += len(before) - 1
		r.endButLast(after, marks, tail)
		return
	}
	r.line += len(before)
	r.newText = append(r.newText, r.open...)
	r.newText = append(r.newText, tail...)
	r.newMarks = append(r.newMarks, marks...)
	r.carried = ""
	r.isCarry = false
	r.from = r.end
	if r.end < len(r.text) {
		r.newText = append(r.newText, '\n')
		r.from++
	}
}

// endButLast ends new lines with their marks but the last one. That one becomes carried, without its tail, the
// text behind the last place, which is not read yet.
func (r *replacement) endButLast(lines []string, marks []int, tail string) {
	last := len(lines) - 1
	for _, line := range lines[:last] {
		r.newText = append(r.newText, line...)
		r.newText = append(r.newText, '\n')
	}
	r.newMarks = append(r.newMarks, marks[:last]...)
	r.carried = strings.TrimSuffix(lines[last], tail)
	r.isCarry = true
	r.mark = marks[last]
	r.from = r.rest
}

// markOf returns the mark of the nth open line before the replacement.
func (r *replacement) markOf(n int) int {
	if n == 0 && r.isCarry {
		return r.mark
	}
	return r.marks[r.line+n]
}

// finish copies the rest, and gives the new text and marks to the fragment.
func (r *replacement) finish() {
	if r.isOpen {
		r.close(false)
	}
	r.newText = append(r.newText, r.text[r.from:]...)
	r.newMarks = append(r.newMarks, r.marks[r.line:]...)
	r.text = string(r.newText)
	r.marks = r.newMarks
}
