package sessioncore

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// ProblemKind is the kind of a problem in a session file, as problems.jsonl names it.
type ProblemKind string

// The kinds of problems.
const (
	ProblemSkipped  ProblemKind = "skipped"    // text that is not a JSON value
	ProblemNoObject ProblemKind = "no-object"  // a value that is not an object
	ProblemHeader   ProblemKind = "header"     // a second header
	ProblemNoID     ProblemKind = "no-id"      // an entry without an id
	ProblemRepeated ProblemKind = "repeated"   // an id that was used before
	ProblemOrphan   ProblemKind = "orphan"     // a parent that is not in the file
	ProblemSelf     ProblemKind = "own-parent" // an entry that is its own parent
	ProblemCycle    ProblemKind = "cycle"      // a cycle of parents
	ProblemBlob     ProblemKind = "blob"       // a reference to a missing blob
)

// Problem is a piece of a session file that could not be read or linked. It is a line of problems.jsonl
// (docs/design.md section 1).
type Problem struct {
	Line   int64        `json:"line"`         // line number, from 1
	Offset int64        `json:"offset"`       // in the file, in bytes
	Size   int64        `json:"bytes"`        // of the text, in bytes
	What   ProblemKind  `json:"problem"`      // its kind
	ID     rawjson.Text `json:"id,omitempty"` // of the entry, if it has one
	Why    rawjson.Text `json:"why"`          // for a person
}

// problemNote is a line of problems.jsonl that is not about one piece of the file.
type problemNote struct {
	What ProblemKind  `json:"problem"`
	Why  rawjson.Text `json:"why"`
}

// problemMore is the kind of a note that more problems exist than are listed.
const problemMore ProblemKind = "more"

// maxProblems is the maximum number of problems of a file that are kept. It bounds the memory for a file of
// garbage; further problems are only counted.
const maxProblems = 100_000

func (x *index) problem(p Problem) {
	x.problemCount++
	if len(x.problems) < maxProblems {
		x.problems = append(x.problems, p)
	}
}

// forgetProblems removes the problems from offset off on. That part of the file is read again, and a value that was
// cut off may be complete now. Older snapshots keep theirs.
func (x *index) forgetProblems(off int64) {
	n := len(x.problems)
	for n > 0 && x.problems[n-1].Offset >= off {
		n--
	}
	x.problemCount -= int64(len(x.problems) - n)
	x.problems = x.problems[:n:n]
}

// Problems returns what could not be read or linked, in file order. Of the problems of reading, list has at most
// the first 100,000; count is the number of all problems.
func (s *Snapshot) Problems() (list []Problem, count int64) {
	tree := s.Tree()
	list = append(slices.Clone(s.problems), tree.problems...)
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	return list, s.problemCount + int64(len(tree.problems))
}

// ProblemsDocument returns problems.jsonl: a JSON object per line, empty if there are no problems. References whose
// blobs are not in blobs are problems too; if blobs is nil, blobs are not checked.
func (s *Snapshot) ProblemsDocument(ctx context.Context, blobs document.Blobs) *document.Document {
	list, count := s.Problems()
	missing, large, blobErr := s.missingProblems(ctx, blobs)
	if len(missing) > 0 {
		list, count = append(list, missing...), count+int64(len(missing))
		slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	}
	var out []byte
	for _, p := range list {
		p.ID = rawjson.Text(shortID(string(p.ID)))
		out = rawjson.AppendLine(out, p)
	}
	if more := count - int64(len(list)); more > 0 {
		out = rawjson.AppendLine(out, problemNote{problemMore, rawjson.Text(fmt.Sprintf("%d further problems are not listed", more))})
	}
	if blobErr != nil {
		why := rawjson.AppendUTF8(nil, []byte("it cannot be told which blobs are missing: "+blobErr.Error()))
		out = rawjson.AppendLine(out, problemNote{ProblemBlob, rawjson.Text(why)})
	}
	if s.blobUsesMore && blobs != nil {
		why := fmt.Sprintf("whether there are blobs was looked at for the first %d references alone", maxBlobUses)
		out = rawjson.AppendLine(out, problemNote{problemMore, rawjson.Text(why)})
	}
	if large {
		if left, err := s.unresolved(ctx, blobs); err == nil && left > 0 {
			why := fmt.Sprintf("context.json has %d MiB of blobs at most: %d references stay references", document.MaxResolved>>20, left)
			out = rawjson.AppendLine(out, problemNote{ProblemBlob, rawjson.Text(why)})
		}
	}
	doc := document.OfText(s, out)
	if len(s.blobUses) > 0 && blobs != nil {
		doc.SetHasBlobs()
	}
	return doc
}

// shortID cuts an id to names.MaxName bytes, so that a hostile id does not make the line long.
func shortID(id string) string {
	if len(id) <= names.MaxName {
		return id
	}
	return string(rawjson.AppendUTF8(nil, []byte(id[:names.MaxName])))
}
