package sessioncore

import (
	"cmp"
	"fmt"
	"slices"

	"sessionfs/sessioncore/internal/rawjson"
)

// ProblemKind is a word for what is wrong with a piece of a session file.
type ProblemKind string

// The kinds of problems.
const (
	ProblemSkipped  ProblemKind = "skipped"    // text that is no value
	ProblemNoObject ProblemKind = "no-object"  // a value that is no object
	ProblemHeader   ProblemKind = "header"     // a second header
	ProblemNoID     ProblemKind = "no-id"      // an entry without an id
	ProblemRepeated ProblemKind = "repeated"   // an id that was used before
	ProblemOrphan   ProblemKind = "orphan"     // a parent that is not in the file
	ProblemSelf     ProblemKind = "own-parent" // an entry that is its own parent
	ProblemCycle    ProblemKind = "cycle"      // parents that lead in a circle
	ProblemBlob     ProblemKind = "blob"       // a blob that an entry refers to is not there
)

// Problem is one thing that could not be read or joined, a line of problems.jsonl (docs/design.md section 1).
type Problem struct {
	Line   int64        `json:"line"`         // number of the line, from 1
	Offset int64        `json:"offset"`       // in the file, in bytes
	Size   int64        `json:"bytes"`        //
	What   ProblemKind  `json:"problem"`      //
	ID     rawjson.Text `json:"id,omitempty"` // of the entry, where it has one
	Why    rawjson.Text `json:"why"`          // for a person
}

// problemNote is a line of problems.jsonl about the lines before it.
type problemNote struct {
	What ProblemKind  `json:"problem"`
	Why  rawjson.Text `json:"why"`
}

// problemMore is the kind of a note that there are more problems.
const problemMore ProblemKind = "more"

// maxProblems is how many problems of a file are kept one by one. A file of nothing but garbage would
// else take memory as it likes; what is beyond is counted.
const maxProblems = 100_000

func (x *index) problem(p Problem) {
	x.problemCount++
	if len(x.problems) < maxProblems {
		x.problems = append(x.problems, p)
	}
}

// forgetProblems takes back what was noted from off on: that part of the file is read again, and what
// was cut off may be whole now. Older snapshots keep theirs.
func (x *index) forgetProblems(off int64) {
	n := len(x.problems)
	for n > 0 && x.problems[n-1].Offset >= off {
		n--
	}
	x.problemCount -= int64(len(x.problems) - n)
	x.problems = x.problems[:n:n]
}

// Problems returns what could not be read or joined, in file order, up to maxProblems of each kind of
// look; count is how many there are.
func (s *Snapshot) Problems() (list []Problem, count int64) {
	tree := s.Tree()
	list = append(slices.Clone(s.problems), tree.problems...)
	slices.SortStableFunc(list, func(a, b Problem) int { return cmp.Compare(a.Offset, b.Offset) })
	return list, s.problemCount + int64(len(tree.problems))
}

// ProblemsDocument returns problems.jsonl: an object a line, nothing where all is well. blobs is where the blobs of
// references should be; nil: they are not looked for.
func (s *Snapshot) ProblemsDocument(blobs Blobs) *Document {
	list, count := s.Problems()
	missing, blobErr := s.missingProblems(blobs)
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
	doc := textDocument(s, out)
	doc.hasBlobs = len(s.blobUses) > 0 && blobs != nil
	return doc
}

// shortID keeps a line about an entry from growing with a hostile id.
func shortID(id string) string {
	if len(id) <= MaxName {
		return id
	}
	return string(rawjson.AppendUTF8(nil, []byte(id[:MaxName])))
}
