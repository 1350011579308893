package nodes

import (
	"bytes"
	"fmt"
)

// tally counts what was written through an open control file since it was opened, or since a line was refused
// last: a program that is told of a short write writes the rest again, and the reason tells of both together.
type tally struct {
	lines   int // newlines, empty lines too
	applied int // lines that took effect
}

// took counts text all of whose lines were taken, and those among them that took effect.
func (t *tally) took(text []byte, applied int) {
	t.lines += bytes.Count(text, newline)
	t.applied += applied
}

var newline = []byte{'\n'}

// lineError is why a line was refused.
type lineError struct {
	err     error
	line    int // which one, from 1
	of      int // how many there are, as far as is known
	applied int // before it
}

func (e *lineError) Error() string {
	return fmt.Sprintf("line %d of %d, %d applied before it: %v", e.line, e.of, e.applied, e.err)
}

func (e *lineError) Unwrap() error { return e.err }

// refuse makes the reason for a refused line, of which text has all that was written with it: the lines
// before it up to start. The count begins anew.
func (t *tally) refuse(err error, text []byte, start int) error {
	line := t.lines + bytes.Count(text[:start], newline) + 1
	of := t.lines + bytes.Count(text, newline)
	if len(text) > 0 && !bytes.HasSuffix(text, newline) {
		of++
	}
	e := &lineError{err: err, line: line, of: max(line, of), applied: t.applied}
	*t = tally{}
	return e
}

// firstLine returns where the first line of text begins: behind the empty lines, if those mean nothing.
func firstLine(text []byte, emptyCounts, goesOn bool) int {
	if emptyCounts || goesOn {
		return 0
	}
	return len(text) - len(bytes.TrimLeft(text, "\n"))
}
