package sessioncore

import (
	"cmp"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// ProblemKind is the kind of a problem in a session file, as problems.jsonl names it.
type ProblemKind string

// The kinds of problems.
const (
	ProblemSkipped  ProblemKind = "skipped"   // text that is not a JSON value
	ProblemNoObject ProblemKind = "no-object" // a value that is not an object
	ProblemHeader   ProblemKind = "header"    // a second header
	ProblemNoID     ProblemKind = "no-id"     // an entry without an id
	ProblemRepeated ProblemKind = "repeated"  // an id that was used before
	ProblemOrphan   ProblemKind = "orphan"    // a parent that is not in the file
	// ProblemUnwritten is a ProblemOrphan of an agent that writes such files.
	ProblemUnwritten ProblemKind = "unwritten"
	ProblemSelf      ProblemKind = "own-parent" // an entry that is its own parent
	ProblemCycle     ProblemKind = "cycle"      // a cycle of parents
	ProblemBlob      ProblemKind = "blob"       // a reference to a missing blob

	// ProblemNoResume is a record that makes the agent refuse to go on with the session.
	ProblemNoResume ProblemKind = "no-resume"

	ProblemOrphanCall   ProblemKind = "orphan-call"   // a tool call without a result
	ProblemOrphanResult ProblemKind = "orphan-result" // a result without its call
)

// Problem is a piece of a session file that could not be read or linked, a line of problems.jsonl
// (docs/design.md section 1).
type Problem struct {
	Line   int64            `json:"line"`         // line number, from 1
	Offset int64            `json:"offset"`       // in the file, in bytes
	Size   int64            `json:"bytes"`        // of the text, in bytes
	What   ProblemKind      `json:"problem"`      // its kind
	ID     rawjson.JSONText `json:"id,omitempty"` // of the entry, if it has one
	Why    rawjson.JSONText `json:"why"`          // for a person
	own    *Problem         // the same in another agent's file, if a line of that may be meant
}

// InOwnFile returns the problem of a session made of another agent's file as one of that file, if it is
// about a line of it. It keeps the place in the session.
func (p Problem) InOwnFile() Problem {
	if p.own == nil {
		return p
	}
	return *p.own
}

// maxProblems bounds the kept problems of a file, and so their memory; others are only counted.
const maxProblems = 100_000

// problem counts a problem, and keeps it if there are not too many.
func (x *index) problem(p Problem) {
	x.problemCount++
	if len(x.problems) < maxProblems {
		x.problems = append(x.problems, p)
	}
}

// forgetProblems removes the problems from offset off on, where the file is read once more, as a
// value that was cut off may be complete now. Older snapshots keep theirs.
func (x *index) forgetProblems(off int64) {
	n := len(x.problems)
	for n > 0 && x.problems[n-1].Offset >= off {
		n--
	}
	x.problemCount -= int64(len(x.problems) - n)
	x.problems = x.problems[:n:n]
}

// Problems returns the problems of reading and linking, in file order: of reading at most the first
// 100,000. count is the number of all problems.
func (s *Snapshot) Problems() (list []Problem, count int64) {
	tree := s.Tree()
	list = append(slices.Clone(s.problems), tree.problems...)
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Compare(a.Offset, b.Offset)
	})
	return list, s.problemCount + int64(len(tree.problems))
}

// ProblemOf returns a problem of an entry.
func (s *Snapshot) ProblemOf(e Entry, what ProblemKind, why string) Problem {
	rec := &s.records[e]
	p := Problem{
		Line:   int64(rec.line),
		Offset: rec.off,
		Size:   int64(rec.size),
		What:   what,
		Why:    rawjson.JSONText(why),
	}
	p.ID = rawjson.JSONText(s.idText(rec.id))
	return p
}
