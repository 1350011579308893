package transcript

import (
	"context"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// sizesKey is the key under which the snapshots of an index share a sizeCache.
type sizesKey struct{}

// sizeCache has the size of each rendered entry, 20 bytes per entry, so that a stat of a transcript renders each
// entry once, and after growth only the new ones. The snapshots of an index share it, since their entries never
// change.
type sizeCache struct {
	mu    sync.Mutex  // guards sizes; held while entries are rendered
	sizes []entrySize // by entry; zero if not rendered yet
}

// entrySize describes a rendered entry.
type entrySize struct {
	body    uint32            // bytes, without the prefixes of links and without the entry's name
	speaker uint32            // who speaks, if in a turn (speakerOf)
	asked   sessioncore.Entry // if partAsked: the message that called for it when it was rendered
	heading uint16            // bytes of the heading, shown if a turn begins here
	entries uint16            // number of links to the entry's file
	blobs   uint16            // number of links to blobs
	naming  uint8             // bytes of the line that names the entry, shown if none begins here
	flags   partFlags
}

type partFlags uint8

const (
	partKnown     partFlags = 1 << iota
	partTurn                // it belongs to a turn
	partAlways              // it begins a turn whatever precedes it
	partJoins               // it belongs to a preceding turn of the assistant, if there is one
	partAssistant           // it is a message of the assistant
	partAsked               // it depends on the message that called for it
	partNamed               // its body names it

	partOfTurn = partTurn | partAlways | partJoins | partAssistant
)

// sizesOf returns the sizeCache of the snapshot's index.
func sizesOf(s *sessioncore.Snapshot) *sizeCache {
	return s.Shared(sizesKey{}, func() any { return &sizeCache{} }).(*sizeCache)
}

// in returns how many bytes the entry takes in a transcript.
func (p *entrySize) in(part shownEntry, w *renderer) int64 {
	n := int64(p.body) + int64(p.blobs)*int64(len(w.links.Blobs))
	if p.entries > 0 {
		n += int64(p.entries) * int64(len(w.entryLink(part.entry)))
	}
	named := 0
	if opening := int64(p.naming); part.begins || opening > 0 {
		if part.begins {
			opening = int64(p.heading)
		}
		n, named = n+opening, 1
	}
	if p.flags&partNamed != 0 {
		named++
	}
	if named > 0 {
		n += int64(named) * int64(len(shownName(w.s.Name(part.entry))))
	}
	return n
}

// of returns the sizes of the entries of a path. It renders those that are not cached.
func (t *sizeCache) of(ctx context.Context, s *sessioncore.Snapshot, path []sessioncore.Entry) ([]entrySize, error) {
	if err := storage.LockUntil(ctx, &t.mu); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	if n := s.Len(); len(t.sizes) < n {
		t.sizes = append(t.sizes, make([]entrySize, n-len(t.sizes))...)
	}
	var missing, askedBy []sessioncore.Entry
	asked := sessioncore.NoEntry
	for _, e := range path {
		if known := &t.sizes[e]; known.flags&partKnown == 0 || known.flags&partAsked != 0 && known.asked != asked {
			missing = append(missing, e)
			askedBy = append(askedBy, asked)
		}
		if isAssistant(s, e) {
			asked = e
		}
	}
	err := s.ReadEntries(ctx, missing, func() func(int, rawjson.Value) error {
		w := newRenderer(s, Links{})
		w.measuring = true
		return func(i int, text rawjson.Value) error {
			size, err := w.render(missing[i], askedBy[i], text)
			if err != nil {
				return err
			}
			size.body, size.heading, size.naming = uint32(len(w.body)), uint16(len(w.heading)), uint8(len(w.naming))
			size.flags |= partKnown
			t.sizes[missing[i]] = size
			return nil
		}
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]entrySize, len(path))
	for i, e := range path {
		sizes[i] = t.sizes[e]
	}
	return sizes, nil
}
