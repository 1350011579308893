package jsonl

import (
	"fmt"
	"strconv"
	"strings"
)

// ReasonNoResume begins the reason why an agent refuses to go on with a session.
const ReasonNoResume = "the agent refuses to resume the session"

// LineProblem describes a line of another agent's file that is no record. A session made of that file
// has its String as a value, so that problems.jsonl lists it.
type LineProblem struct {
	Line int64  // its number, from 1
	Size int64  // of the text, in bytes
	Why  string // one of the reasons
}

// String implements fmt.Stringer.
func (p LineProblem) String() string {
	return fmt.Sprintf("line %d, %d bytes: %s", p.Line, p.Size, p.Why)
}

// ParseLineProblem parses the String of a LineProblem: "line 7, 30 bytes: not JSON". ok is false for another
// text.
func ParseLineProblem(text string) (p LineProblem, ok bool) {
	text, isLine := strings.CutPrefix(text, "line ")
	line, text, hasSize := strings.Cut(text, ", ")
	size, why, hasWhy := strings.Cut(text, " bytes: ")
	if !isLine || !hasSize || !hasWhy {
		return p, false
	}
	number, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		return p, false
	}
	bytes, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return p, false
	}
	return LineProblem{Line: number, Size: bytes, Why: why}, true
}
