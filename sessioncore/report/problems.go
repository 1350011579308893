package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// note is a line of problems.jsonl that is not about one piece of the file.
type note struct {
	What sessioncore.ProblemKind `json:"problem"`
	Why  rawjson.JSONText        `json:"why"`
}

// more is the kind of a note that more problems exist than are listed.
const more sessioncore.ProblemKind = "more"

// Problems returns problems.jsonl: a JSON object per line, empty if there are no problems.
// References to blobs that are not in blobs are problems too; if blobs is nil, blobs are not checked.
func Problems(ctx context.Context, s *sessioncore.Snapshot, blobs document.Blobs) (*document.Document, error) {
	err := s.ConfirmAll(ctx)
	if err != nil {
		return nil, err
	}
	list, count, err := linked(ctx, s)
	if err != nil {
		return nil, err
	}
	found, err := lookForBlobs(ctx, s, blobs)
	if err != nil {
		return nil, err
	}
	calls, err := orphans(ctx, s)
	if err != nil {
		return nil, err
	}
	list = slices.Concat(list, found.missing, calls[:min(len(calls), maxOrphans)])
	count += int64(len(found.missing) + len(calls))
	slices.SortStableFunc(list, func(a, b sessioncore.Problem) int {
		return cmp.Compare(a.Offset, b.Offset)
	})
	var out []byte
	for _, p := range list {
		if len(p.ID) > names.MaxName { // so that a hostile id does not make the line long
			p.ID = rawjson.JSONText(rawjson.AppendUTF8(nil, []byte(p.ID[:names.MaxName])))
		}
		out = rawjson.AppendLine(out, p)
	}
	further := count - int64(len(list)) // count has those that a bound left out, too
	if further > 0 {
		found.note(more, "%d further problems are not listed", further)
	}
	for _, n := range found.notes {
		out = rawjson.AppendLine(out, n)
	}
	doc := document.OfText(s, out)
	if found.any {
		doc.SetHasBlobs()
	}
	return doc, nil
}

// linked returns the first problems of reading and of linking entries, and the number of all. A missing parent is no sign of
// damage where agents leave one out: in a session converted from another agent's file, as its first
// message may go on from a message elsewhere; in a fork, as older versions of omp leave labels out;
// and in sessions of pi, as versions before 1.5 did not write all.
func linked(ctx context.Context, s *sessioncore.Snapshot) (list []sessioncore.Problem, count int64, err error) {
	list, count = s.Problems()
	list, err = inOwnFile(s, list)
	if err != nil {
		return nil, 0, err
	}
	before := len(list)
	list, err = withoutCallers(ctx, s, list)
	if err != nil {
		return nil, 0, err
	}
	count -= int64(before - len(list))
	isOrphan := func(p sessioncore.Problem) bool {
		return p.What == sessioncore.ProblemOrphan
	}
	isDamage := func(p sessioncore.Problem) bool {
		return p.What == sessioncore.ProblemSkipped || p.What == sessioncore.ProblemNoObject
	}
	if !slices.ContainsFunc(list, isOrphan) || slices.ContainsFunc(list, isDamage) {
		return list, count, nil
	}
	header, _, err := s.ReadHeader()
	if err != nil {
		return nil, 0, err
	}
	first, isForeign, err := firstMessage(s)
	if err != nil {
		return nil, 0, err
	}
	parent := header.Member(s.Dialect().ParentSessionKey)
	if !isForeign && s.Dialect() != sessioncore.Pi && !parent.IsString() {
		return list, count, nil
	}
	for i := range list {
		if isOrphan(list[i]) {
			list[i].What = sessioncore.ProblemUnwritten
		}
	}
	if isForeign { // its first message may go on from one elsewhere
		firstRange, _ := s.EntryRange(first)
		before := len(list)
		list = slices.DeleteFunc(list, func(p sessioncore.Problem) bool {
			return p.What == sessioncore.ProblemUnwritten && p.Offset == firstRange.Offset
		})
		count -= int64(before - len(list))
	}
	return list, count, nil
}

// called is the file of a session that another session may have called.
type called interface {
	// InCaller returns those ids that are records of the calling session.
	InCaller(ctx context.Context, ids map[string]bool) (found map[string]bool, err error)
}

// withoutCallers returns problems without missing parents that are in the session that called this one.
func withoutCallers(ctx context.Context, s *sessioncore.Snapshot, list []sessioncore.Problem) ([]sessioncore.Problem, error) {
	file, ok := s.File().(called)
	if !ok {
		return list, nil
	}
	parents := map[int64]string{} // by the offset of the problem
	ids := map[string]bool{}
	for _, p := range list {
		if p.What != sessioncore.ProblemOrphan {
			continue
		}
		entry, err := s.EntryText(s.EntryAt(p.Offset))
		if err != nil {
			return nil, err
		}
		id, _ := entry.Member(s.Dialect().ParentKey).Text()
		parents[p.Offset] = id
		ids[id] = true
	}
	if len(ids) == 0 {
		return list, nil
	}
	found, err := file.InCaller(ctx, ids)
	return slices.DeleteFunc(list, func(p sessioncore.Problem) bool {
		return p.What == sessioncore.ProblemOrphan && found[parents[p.Offset]]
	}), err
}

// firstMessage returns the first message, or the last entry, of a session with entries, and whether it
// is made of another agent's record.
func firstMessage(s *sessioncore.Snapshot) (first sessioncore.Entry, isForeign bool, err error) {
	for int(first) < s.Len()-1 && s.Kind(first) != sessioncore.TypeMessage {
		first++
	}
	begin, err := s.EntryText(first)
	return first, begin.Member("origin").Member("line").IsNumber(), err
}

// inOwnFile returns problems that give lines of another agent's file that became no entry their
// number, size and reason in that file.
func inOwnFile(s *sessioncore.Snapshot, list []sessioncore.Problem) ([]sessioncore.Problem, error) {
	isLine := func(p sessioncore.Problem) bool {
		return p.What == sessioncore.ProblemNoObject
	}
	if s.Len() == 0 || !slices.ContainsFunc(list, isLine) {
		return list, nil
	}
	_, isForeign, err := firstMessage(s)
	if err != nil || !isForeign {
		return list, err
	}
	for i := range list {
		list[i] = list[i].InOwnFile()
	}
	return list, nil
}

// maxOrphans is how many tool calls without a result, and results without a call, are listed.
const maxOrphans = 10_000

// maxReferences is how many references to blobs are looked after in a session, roughly. Each costs
// a stat whenever problems.jsonl is made.
const maxReferences = 20_000

// blobsFound is the result of the search for the blobs of a session.
type blobsFound struct {
	any     bool // an entry may refer to blobs
	missing []sessioncore.Problem
	notes   []note
}

// note adds a note of a kind with a reason.
func (f *blobsFound) note(kind sessioncore.ProblemKind, format string, args ...any) {
	text := rawjson.AppendUTF8(nil, fmt.Appendf(nil, format, args...))
	f.notes = append(f.notes, note{kind, rawjson.JSONText(text)})
}

// missingBlob is the size of a blob that blobs/ does not have.
const missingBlob = -1

// blobSizes remembers the sizes of blobs.
type blobSizes struct {
	blobs document.Blobs
	known map[string]int64
}

// size returns the size of a blob, or missingBlob.
func (b *blobSizes) size(hash string) (int64, error) {
	size, isKnown := b.known[hash]
	if isKnown {
		return size, nil
	}
	size, err := b.blobs.Size(hash)
	if errors.Is(err, fs.ErrNotExist) {
		size = missingBlob
	} else if err != nil {
		return 0, err
	}
	b.known[hash] = size
	return size, nil
}

// lookForBlobs looks for the blobs that entries refer to, unless blobs is nil. The error is one of
// reading the entries.
func lookForBlobs(ctx context.Context, s *sessioncore.Snapshot, blobs document.Blobs) (found blobsFound, err error) {
	var taken int64 // bytes of the blobs in a context
	references := 0
	sizes := blobSizes{blobs: blobs, known: map[string]int64{}}
	reader := sessioncore.NewEntryReader(s)
	for e := range sessioncore.Entry(s.Len()) {
		if blobs == nil || !s.RefersToBlobs(e) {
			continue
		}
		found.any = true
		if references >= maxReferences {
			found.note(more, "whether there are blobs was looked at for the first %d references alone", references)
			taken = document.MaxResolved + 1 // the rest may be too large
			break
		}
		text, err := reader.Read(e)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return found, err
		}
		var hashes []string
		document.EachReference(text, func(hash string) {
			hashes = append(hashes, hash)
		})
		references += len(hashes)
		told := map[string]bool{} // the missing blobs of this entry, each told once
		for _, hash := range hashes {
			size, err := sizes.size(hash)
			if err != nil {
				found.note(sessioncore.ProblemBlob, "it cannot be told which blobs are missing: %v", err)
				return found, nil
			}
			switch {
			case size != missingBlob:
				blob := rawjson.Blob{Base64: true, Bytes: size}
				taken += blob.Size()
			case !told[hash]:
				told[hash] = true
				why := "the blob " + hash + " is not in blobs/"
				found.missing = append(found.missing, s.ProblemOf(e, sessioncore.ProblemBlob, why))
			}
		}
	}
	if taken > document.MaxResolved {
		left, err := unresolved(ctx, s, blobs)
		if err == nil && left > 0 {
			const why = "context.json has %d MiB of blobs at most: %d references stay references"
			found.note(sessioncore.ProblemBlob, why, document.MaxResolved>>20, left)
		}
	}
	return found, nil
}

// unresolved returns the number of references that the context at the leaf has no room for. The error is one of
// making the context.
func unresolved(ctx context.Context, s *sessioncore.Snapshot, blobs document.Blobs) (int, error) {
	leaf, err := s.Leaf()
	if err != nil {
		return 0, err
	}
	doc, err := s.Context(ctx, leaf, blobs)
	if err != nil {
		return 0, err
	}
	defer doc.Close()
	return doc.Unresolved(), nil
}
