package view

import (
	"context"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// sizesKey is the key under which the snapshots of an index share a sizeCache.
type sizesKey struct{ links Links }

// sizeCache has the size of each rendered entry, so that a stat of a transcript renders each entry once, and after
// growth only the new ones: entries never change.
type sizeCache struct {
	mu    sync.Mutex  // guards sizes; held while entries are rendered
	sizes []entrySize // by entry; zero if not rendered yet
}

// entrySize describes a rendered entry, in 28 bytes.
type entrySize struct {
	body    uint32            // bytes
	heading uint32            // bytes of the heading, shown if a turn begins here
	naming  uint32            // bytes of the line that names the entry, shown if none begins here
	speaker uint32            // see entryBlocks
	name    uint32            // a hash of the entry's name, which changes if a later entry has the same id
	asked   sessioncore.Entry // see entryBlocks; another one if the id of an entry above comes again
	flags   turnFlags
}

// sizesOf returns the sizeCache of the snapshot's index.
func sizesOf(s *sessioncore.Snapshot, links Links) *sizeCache {
	return s.Shared(sizesKey{links}, func() any { return &sizeCache{} }).(*sizeCache)
}

// in returns how many bytes the entry takes in a transcript.
func (p *entrySize) in(begins bool) int64 {
	if begins {
		return int64(p.body) + int64(p.heading)
	}
	return int64(p.body) + int64(p.naming)
}

// of returns the sizes of the entries of a branch. It renders those that are not cached.
func (t *sizeCache) of(
	ctx context.Context, s *sessioncore.Snapshot, entries []shownEntry, w markdownWriter,
) ([]entrySize, error) {
	if err := storage.LockUntil(ctx, &t.mu); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if n := s.Len(); len(t.sizes) < n {
		t.sizes = append(t.sizes, make([]entrySize, n-len(t.sizes))...)
	}
	var missing, askedBy []sessioncore.Entry
	for _, it := range entries {
		if known := &t.sizes[it.entry]; known.name != hashOf(s.Name(it.entry)) || known.asked != it.asked {
			missing, askedBy = append(missing, it.entry), append(askedBy, it.asked)
		}
	}
	err := s.ReadEntries(ctx, missing, func() func(int, rawjson.Value) error {
		b, scratch := newBuilder(s), []byte(nil)
		length := func(blocks ...block) uint32 {
			scratch = w.append(scratch[:0], blocks...)
			return uint32(len(scratch))
		}
		return func(i int, text rawjson.Value) error {
			e := missing[i]
			r, err := b.build(e, askedBy[i], text)
			if err == nil {
				body, heading, naming := length(r.body...), length(r.heading), length(r.naming)
				t.sizes[e] = entrySize{body, heading, naming, r.speaker, hashOf(s.Name(e)), r.asked, r.flags}
			}
			return err
		}
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]entrySize, len(entries))
	for i, it := range entries {
		sizes[i] = t.sizes[it.entry]
	}
	return sizes, nil
}
