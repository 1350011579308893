package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// worker searches files in one goroutine.
type worker struct {
	*run
	scanner scanner
	checker Checker
}

// fileTries is how often a file is searched again that was replaced meanwhile. After that, all of it is looked at.
const fileTries = 3

// file searches a file. A file that is no session, or no more there, has no hits.
func (w *worker) file(ctx context.Context, f file) *Found {
	found := &Found{File: f.name, tree: w.Tree, token: f.Token, readAt: time.Now().UnixNano()}
	err := w.search(ctx, found)
	switch {
	case err == nil, storage.IsMissing(err), errors.Is(err, sessioncore.ErrNotSession), errors.Is(err, storage.ErrNotRegular):
	default:
		found.Err, found.Hits = err, nil
	}
	return found
}

func (w *worker) search(ctx context.Context, found *Found) error {
	var err error
	for try := range fileTries + 1 {
		err = w.try(ctx, found, try == fileTries)
		if !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	return err
}

// try searches a file, and returns storage.ErrStale if it changed meanwhile. whole says that all of it is looked at.
func (w *worker) try(ctx context.Context, found *Found, whole bool) error {
	found.readAt = time.Now().UnixNano()
	header := func() (rawjson.Value, error) { return sessioncore.ReadHeaderOf(ctx, w.Files, found.File) }
	needle, err := w.m.Needle(header)
	if err != nil {
		return err
	}
	token, lines, all, err := w.scan(ctx, found.File, needle, whole)
	if err != nil || len(lines) == 0 && !all {
		found.token = token
		return err
	}
	wanted, err := w.m.Session(header)
	if err != nil || !wanted {
		found.token = token
		return err
	}
	session := w.store.Session(found.File)
	defer session.Drop()
	snap, err := session.Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	if !whole && snap.Stat().Token != token {
		return storage.ErrStale
	}
	found.token = snap.Stat().Token
	if !w.hasDirectory(found.File) {
		return nil
	}
	return w.check(ctx, found, snap, lines, all)
}

// scan finds the lines of a file with the needle.
func (w *worker) scan(ctx context.Context, name string, needle *Needle, whole bool) (token storage.Token, lines []candidate, all bool, err error) {
	obj, err := w.Files.Open(name)
	if err != nil {
		return token, nil, false, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil || whole {
		return st.Token, nil, true, err
	}
	lines, all, err = w.scanner.find(ctx, obj, st.Size, needle)
	return st.Token, lines, all, err
}

// hasDirectory reports whether a session has a directory in the mount: a real file or link of that name would be shown
// instead (docs/design.md section 1).
func (w *worker) hasDirectory(name string) bool {
	st, err := w.Files.Stat(strings.TrimSuffix(name, sessioncore.FileEnding))
	return err != nil || st.Kind != storage.KindFile && st.Kind != storage.KindLink
}

// fewEntries is how many entries are not worth the buffer of a reader.
const fewEntries = 16

// check looks at the entries on lines, or at all, and at the title.
func (w *worker) check(ctx context.Context, found *Found, snap *sessioncore.Snapshot, lines []candidate, all bool) error {
	found.Hits = nil
	hits, err := w.title(found.File, snap)
	if err != nil {
		return err
	}
	r := sessioncore.NewEntryReader(snap)
	read := r.Read
	entries := newestFirst(snap, lines, all)
	if len(entries) < fewEntries {
		read = snap.EntryText
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		text, err := read(e)
		if err != nil {
			return err
		}
		hit, ok, err := w.checker.Entry(snap, e, text)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		hit.File, hit.Entry, hit.What, hit.Time = found.File, snap.Name(e), snap.PathLabel(e), snap.Time(e)
		hits = append(hits, hit)
		if len(hits) > w.limit {
			break // that there is one more is all that matters
		}
	}
	if len(hits) == 0 {
		return nil
	}
	name := listing.DisplayName(snap.File(), snap.Stat().Size, found.File)
	for i := range hits {
		hits[i].Session, hits[i].Tree = name, w.Tree
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return b.Time.Compare(a.Time) }) // the title was not in order
	found.Hits = hits
	return nil
}

// title returns a hit for the title in the session's header or title slot, if it is one.
func (w *worker) title(name string, snap *sessioncore.Snapshot) ([]Hit, error) {
	header, slot, err := snap.ReadHeader()
	if err != nil {
		return nil, err
	}
	if slot != nil {
		header = slot
	}
	line, ok := w.checker.Title(header.Member("title"), snap.HeaderTime())
	if !ok {
		return nil, nil
	}
	return []Hit{{File: name, What: TitleLabel, Time: snap.HeaderTime(), Line: line}}, nil
}

// newestFirst returns the entries that have a part of one of the lines, or all entries, those with the latest time first.
func newestFirst(snap *sessioncore.Snapshot, lines []candidate, all bool) (entries []sessioncore.Entry) {
	if all {
		lines = []candidate{{0, math.MaxInt64}}
	}
	next := sessioncore.Entry(0)
	for _, l := range lines {
		rest := snap.Len() - int(next)
		next += sessioncore.Entry(sort.Search(rest, func(i int) bool {
			r, _ := snap.EntryRange(next + sessioncore.Entry(i))
			return r.Offset+r.Size > l.from
		}))
		for ; int(next) < snap.Len(); next++ {
			if r, _ := snap.EntryRange(next); r.Offset >= l.to {
				break
			}
			entries = append(entries, next)
		}
	}
	slices.SortStableFunc(entries, func(a, b sessioncore.Entry) int {
		return cmp.Or(snap.Time(b).Compare(snap.Time(a)), cmp.Compare(b, a))
	})
	return entries
}
