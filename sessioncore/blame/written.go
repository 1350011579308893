package blame

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/search"
)

// This file finds the path where a file was before an agent wrote the same text to another path and removed
// the first.

const (
	// leastText and leastLines are the least size of a text that equals another by no accident, in bytes and
	// in lines with a word.
	leastText  = 64
	leastLines = 3
	// leastPhrase and mostPhrase bound the part of a text that is searched for, in bytes.
	leastPhrase = 16
	mostPhrase  = 200
	// maxPhrases bounds the phrases that are searched for: an edit may have made a line of two.
	maxPhrases = 2
	// maxOrigins bounds the paths that are compared with the first write of a file.
	maxOrigins = 4
)

// writtenFrom returns the path with the text that the first call wrote to the file, and that write as a
// move. It returns nil if there is none, if the write was not before later, or if the path is still used, so that
// the file is a copy.
func (t *Tracer) writtenFrom(
	ctx context.Context, file *search.Touched, first *FileEdit, later *fileMove,
) (*Earlier, *fileMove, error) {
	text := first.Changes[0].New
	by := &fileMove{by: first.Hit}
	if !isTelling(text) || !by.isBefore(later) {
		return nil, nil, nil
	}
	for _, phrase := range phrasesIn(text) {
		origins, err := t.origins(ctx, phrase, first.Hit, file.Path())
		if err != nil {
			return nil, nil, err
		}
		for _, origin := range origins {
			found, err := t.hasText(ctx, origin, text, first.Hit)
			if err != nil || found != nil {
				return found, by, err
			}
		}
		if len(origins) > 0 { // another phrase of the text would lead to the same paths
			break
		}
	}
	return nil, nil, nil
}

// firstWrite returns the first call that names a file, of hits, which are the newest first, if it wrote all of
// it. Else it returns nil, as for a directory.
func (t *Tracer) firstWrite(ctx context.Context, hits []search.Hit, file *search.Touched) (*FileEdit, error) {
	if t.IsDirectory || len(hits) == 0 {
		return nil, nil
	}
	oldest := hits[len(hits)-1:]
	edits, err := Edits(ctx, oldest, file, t.Acquire)
	if err != nil || len(edits) == 0 {
		return nil, err
	}
	first := &edits[0]
	if !first.Changes[0].Whole {
		return nil, nil
	}
	return first, nil
}

// isTelling reports whether a text equals another one hardly by accident.
func isTelling(text string) bool {
	lines := 0
	for line := range strings.Lines(text) {
		if hasWord(line) {
			lines++
		}
	}
	return len(text) >= leastText && lines >= leastLines
}

// phrasesIn returns the longest parts of lines that a query can have as phrases, the longest first.
func phrasesIn(text string) (phrases []string) {
	isBreak := func(r rune) bool {
		isOfWord := unicode.IsLetter(r) || unicode.IsDigit(r)
		return !isOfWord && !strings.ContainsRune(" _-.,()=", r)
	}
	for part := range strings.FieldsFuncSeq(text, isBreak) {
		part = strings.TrimSpace(part)
		if len(part) >= leastPhrase && len(part) <= mostPhrase {
			phrases = append(phrases, part)
		}
	}
	slices.SortStableFunc(phrases, func(a, b string) int { return len(b) - len(a) })
	return phrases[:min(len(phrases), maxPhrases)]
}

// origins returns the paths, except one, in calls with a phrase, the newest call first, at most maxOrigins. It
// searches the session of an entry up to that entry alone: a search of all sessions would take as long as the one
// for the file.
func (t *Tracer) origins(ctx context.Context, phrase string, before *search.Hit, except string) (paths []string, err error) {
	query, err := search.ParseQuery(`"` + phrase + `" role:assistant`)
	if err != nil { // the phrase is none that can be searched for
		return nil, nil
	}
	result, err := t.SearchIn(ctx, query, before.File)
	if err != nil {
		return nil, err
	}
	anywhere, err := search.NewTouched("/")
	if err != nil {
		return nil, err
	}
	for i := range result.Hits {
		if len(paths) >= maxOrigins {
			break
		}
		hit := &result.Hits[i]
		isEarlier := hit.Time.Before(before.Time)
		if hit.Entry == "" || !isEarlier {
			continue
		}
		named, err := t.namedIn(hit, anywhere)
		if err != nil && !errors.Is(err, sessioncore.ErrNotFound) {
			return nil, err
		}
		for _, path := range named {
			if path != except && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths[:min(len(paths), maxOrigins)], nil
}

// namedIn returns the absolute paths in the calls of the entry of a hit. anywhere is the root of all paths.
func (t *Tracer) namedIn(hit *search.Hit, anywhere *search.Touched) (paths []string, err error) {
	found, err := t.entryOf(hit)
	if err != nil {
		return nil, err
	}
	defer found.snap.Release()
	text, err := found.snap.ShownText(found.entry)
	if err != nil {
		return nil, err
	}
	fileOf := anywhere.FileOf(found.header)
	content := found.snap.Message(found.entry, text).Member("content")
	message.EachCall(content, func(call *message.Members) {
		tool, _ := call[message.Name].Text()
		message.EachPath(tool, call[message.Arguments], func(name string) bool {
			file := fileOf(name)
			if file != "" {
				paths = append(paths, file)
			}
			return true
		})
	})
	return paths, nil
}

// hasText returns a path as an earlier one, if the calls before the entry by gave its file exactly this text, no
// later call names it, and there is no such file any more. Else it returns nil.
func (t *Tracer) hasText(ctx context.Context, path, text string, by *search.Hit) (*Earlier, error) {
	touched, err := search.NewTouched(path)
	if err != nil || t.Exists(path) { // a path that no call can name, or a file that was copied
		return nil, nil
	}
	all, err := t.hits(ctx, touched)
	if err != nil {
		return nil, err
	}
	isLater := func(h search.Hit) bool { return h.Time.After(by.Time) }
	if slices.ContainsFunc(all, isLater) {
		return nil, nil
	}
	edits, err := Edits(ctx, all, touched, t.Acquire)
	if err != nil {
		return nil, err
	}
	changes := make([][]Change, len(edits))
	for i := range edits {
		changes[i] = edits[i].Changes
	}
	r := replay{limit: limitOf(text, changes)}
	for n, list := range changes {
		for _, c := range list {
			r.apply(c, n)
		}
	}
	if !r.isWhole(text) {
		return nil, nil
	}
	beforeWrite := by.Time.Add(-time.Nanosecond)
	found := &Earlier{
		Touched:   touched.Until(beforeWrite),
		Hits:      all,
		By:        by,
		IsWritten: true,
	}
	return found, nil
}
