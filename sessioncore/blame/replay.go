package blame

import (
	"slices"
	"strings"
)

// maxParts bounds the fragments that a change is sought in. An agent that never reads or writes a
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

// apply applies a change of an edit in the first of these ways that the parts admit. After "B\nC\n" was written
// as a fragment by edit 0:
//
//	change                    way                                          parts
//	all of the file           setWhole: the file is known                  the file alone
//	"C" to "c"                applyExactly: a fragment has the old text    "B\nc\n"
//	"B\nx\nC" to "B\ny\nC"    applyToLikest: one has lines of it, as a     "B\ny\nC\n"
//	                          person has put "x" there
//	"p" to "q"                addPart: nothing is known about it           "B\nC\n" and "q"
func (r *replay) apply(c Change, edit int) {
	if c.Whole {
		r.setWhole(c.New, edit)
		return
	}
	recent := r.recent()
	isApplied := r.applyExactly(recent, c, edit)
	if isApplied {
		return
	}
	isApplied = r.applyToLikest(recent, c, edit)
	if isApplied {
		return
	}
	r.addPart(c, edit)
}

// setWhole makes a text that an edit wrote the whole file, in place of all fragments. The same text again changes
// nothing.
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
// numbers; lines that gave way by their numbers are added to replaced. It reports whether there is one.
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
// that text in their place, as a person has changed the file; the lines that stood there are added to replaced.
// It reports whether any fragment has such a line.
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

// addPart adds a fragment with the new text of a change of unknown lines, none for a change without texts.
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
