package nodes

import (
	"bytes"
	"fmt"
)

// tally counts what was written through an open control file since it was opened, or since the last line was
// refused: after a short write a program writes the rest again, and the error must count the lines of both writes.
type tally struct {
	lines   int // newlines, including those of empty lines
	applied int // lines that took effect
}

// took counts text whose lines were accepted, and how many of them took effect.
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

// refuse returns the error for a refused line, which begins at start in text, and resets the tally. text is all that
// was written together with the line.
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

// firstLine returns where the first line of text begins: after the empty lines, if these are ignored.
func firstLine(text []byte, emptyCounts, goesOn bool) int {
	if emptyCounts || goesOn {
		return 0
	}
	return len(text) - len(bytes.TrimLeft(text, "\n"))
}
