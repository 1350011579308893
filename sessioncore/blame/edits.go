package blame

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
)

// FileEdit is an edit of a file: the changes by the calls in one entry. Its prompt is a whole line.
type FileEdit struct {
	*search.Hit
	Changes []Change
}

// Edits returns the edits of a file among hits of touched, the oldest first. acquire returns the
// session of a hit, which is released. An entry that is gone meanwhile has none, nor has a hit without an entry.
func Edits(
	ctx context.Context, hits []search.Hit, touched *search.Touched,
	acquire func(*search.Hit) (*sessioncore.Snapshot, error),
) (list []FileEdit, err error) {
	hitsOf := map[string][]*search.Hit{} // by the session's file
	var files []string                   // in the order of their first hits
	for i := range hits {
		h := &hits[i]
		if h.Entry == "" {
			continue
		}
		if hitsOf[h.File] == nil {
			files = append(files, h.File)
		}
		hitsOf[h.File] = append(hitsOf[h.File], h)
	}
	for _, file := range files {
		found, err := editsIn(hitsOf[file], touched, acquire)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", hitsOf[file][0].Directory(), err)
		}
		list = append(list, found...)
	}
	Sort(list)
	return list, nil
}

// Sort puts the oldest edit first, and edits of one time in the order of their paths.
func Sort(list []FileEdit) {
	slices.SortStableFunc(list, func(a, b FileEdit) int {
		order := a.Time.Compare(b.Time)
		if order != 0 {
			return order
		}
		return cmp.Compare(a.Path(), b.Path())
	})
}

// editsIn returns the edits among hits, which are of one session, in their order.
func editsIn(
	hits []*search.Hit, touched *search.Touched, acquire func(*search.Hit) (*sessioncore.Snapshot, error),
) (list []FileEdit, err error) {
	snap, err := acquire(hits[0])
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	header, _, err := snap.ReadHeader()
	if err != nil {
		return nil, err
	}
	spellings := touched.Names(header)
	known := map[sessioncore.Entry]bool{}
	results := callIDs{}
	prompts := search.Prompts{AreWhole: true}
	for _, h := range hits {
		e, err := snap.FindName(h.Entry)
		isGone := errors.Is(err, sessioncore.ErrNotFound)
		if isGone || known[e] {
			continue
		}
		if err != nil {
			return nil, err
		}
		known[e] = true
		changes, err := results.read(snap, e, spellings)
		if err != nil {
			return nil, err
		}
		if len(changes) == 0 {
			continue
		}
		hit := *h // a copy, as the caller keeps its own prompt
		if h.Prompt != "" {
			hit.Prompt = prompts.Before(snap, e)
		}
		list = append(list, FileEdit{Hit: &hit, Changes: changes})
	}
	return list, nil
}

// Diff returns the edit as a diff of a file, below its entry, its session and its prompt. by is the time and
// the agent, as text. The result has no effect on a terminal.
func (e *FileEdit) Diff(file, by string) string {
	text := fmt.Sprintf("edit %s\n%s, in %s\n", e.Path(), by, e.Title)
	if e.Prompt != "" {
		text += "\n    " + e.Prompt + "\n"
	}
	text += "\n" + diff(path.Base(file), e.Changes)
	const layout = "\n\t" // stays; other control characters are escaped
	return names.VisibleExcept(text, layout)
}
