package blame

import (
	"strings"

	"sessionfs/sessioncore/view"
)

// replacement builds a fragment with all places of Old replaced, from the first one to the last. It
// builds the text and the marks once, so that a place costs its own lines and no more.
//
// A place opens its lines. The next one continues them if it begins in the last of these: with "a" to
// "b" the line "xaya" becomes "xbyb" at once. Lines that are the same before and after keep their marks.
type replacement struct {
	*fragment // as it was
	change    Change
	edit      int
	// eachAlone says that the lines of a place are compared alone, also if the next place begins in
	// the last of them: that becomes the carried line. Otherwise a list of lines that all end with a
	// new newline would be compared as one, and differ too much.
	eachAlone bool

	newText  []byte // of the lines before the first open or unread one
	newMarks []int
	from     int // the offset of that line, or of the part behind carried
	line     int // its number
	carried  string
	mark     int // of the line that carried begins
	isCarry  bool

	isOpen bool
	open   []byte // the new text of the open lines, up to rest
	rest   int    // the end of the last place
	end    int    // the end of its line, -1 before the first place
}

// newReplacement returns a replacement of no place.
func newReplacement(p *fragment, c Change, edit int) *replacement {
	eachAlone := strings.Contains(c.Old, "\n") && strings.Contains(c.New, "\n")
	size := len(p.text) + len(c.New)
	return &replacement{fragment: p, change: c, edit: edit, eachAlone: eachAlone, end: -1, newText: make([]byte, 0, size)}
}

// replaceAt replaces Old at an offset behind the places before.
func (r *replacement) replaceAt(at int) {
	if r.isOpen && (at > r.end || r.eachAlone) {
		r.close(at <= r.end)
	}
	if !r.isOpen {
		r.skipTo(at)
	}
	r.open = append(r.open, r.text[r.rest:at]...)
	r.open = append(r.open, r.change.New...)
	r.rest = at + len(r.change.Old)
	if r.rest <= r.end { // in the same line
		return
	}
	r.end = len(r.text)
	size := strings.IndexByte(r.text[r.rest:], '\n')
	if size >= 0 {
		r.end = r.rest + size
	}
}

// skipTo keeps the lines before the line of an offset, and opens that line.
func (r *replacement) skipTo(at int) {
	start := r.from + strings.LastIndexByte(r.text[r.from:at], '\n') + 1
	count := strings.Count(r.text[r.from:start], "\n")
	r.newText = append(r.newText, r.text[r.from:start]...)
	r.newMarks = append(r.newMarks, r.marks[r.line:r.line+count]...)
	r.from = start
	r.line += count
	r.rest = start
	r.isOpen = true
	r.open = append(r.open[:0], r.carried...)
}

// close compares the open lines with those that they replace. With carry the last one is continued.
func (r *replacement) close(carry bool) {
	tail := r.text[r.rest:r.end]
	before := strings.Split(r.carried+r.text[r.from:r.end], "\n")
	after := strings.Split(string(r.open)+tail, "\n")
	marks := repeated(r.edit, len(after))
	view.EachCommon(before, after, func(i, j int) { marks[j] = r.markOf(i) })
	last := len(after) - 1
	r.isOpen = false
	if carry {
		for _, line := range after[:last] {
			r.newText = append(r.newText, line...)
			r.newText = append(r.newText, '\n')
		}
		r.newMarks = append(r.newMarks, marks[:last]...)
		r.carried = strings.TrimSuffix(after[last], tail)
		r.isCarry = true
		r.mark = marks[last]
		r.from = r.rest
		r.line += len(before) - 1
		return
	}
	r.newText = append(append(r.newText, r.open...), tail...)
	r.newMarks = append(r.newMarks, marks...)
	r.carried = ""
	r.isCarry = false
	r.from = r.end
	r.line += len(before)
	if r.end < len(r.text) {
		r.newText = append(r.newText, '\n')
		r.from++
	}
}

// markOf returns the mark of an open line.
func (r *replacement) markOf(n int) int {
	if n == 0 && r.isCarry {
		return r.mark
	}
	return r.marks[r.line+n]
}

// finish makes the fragment the new one.
func (r *replacement) finish() {
	if r.isOpen {
		r.close(false)
	}
	r.newText = append(r.newText, r.text[r.from:]...)
	r.newMarks = append(r.newMarks, r.marks[r.line:]...)
	r.text = string(r.newText)
	r.marks = r.newMarks
}
