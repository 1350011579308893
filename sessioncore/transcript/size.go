package transcript

import (
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// sizesKey is the key of the sizeCache that snapshots share.
type sizesKey struct{}

// sizeCache remembers how long the rendering of each entry is, 20 bytes an entry, so that a stat of
// a transcript renders each entry once and after growth only the new ones. The snapshots of one index
// share it: an entry of theirs never changes.
type sizeCache struct {
	mu    sync.Mutex  // guards sizes; held while entries are rendered
	sizes []entrySize // by entry; the zero value for one that was not rendered yet
}

// entrySize is what a transcript knows of an entry without rendering it.
type entrySize struct {
	body    uint32            // bytes, but for what depends on where the transcript lies
	speaker uint32            // who speaks, in a turn
	asked   sessioncore.Entry // with partAsked: the message that called for it, when it was rendered
	heading uint16            // bytes of the heading of a turn
	entries uint16            // links to the entry's file
	blobs   uint16            // links to blobs
	flags   partFlags
}

type partFlags uint8

const (
	partKnown     partFlags = 1 << iota
	partTurn                // it is a part of a turn
	partAlways              // it begins one, whatever stands before it
	partJoins               // it belongs to the assistant's turn before it, if there is one
	partAssistant           // it is the assistant's
	partAsked               // it shows something of the message that called for it

	partOfTurn = partTurn | partAlways | partJoins | partAssistant
)

// sizesOf returns the sizes that the snapshots of an index share.
func sizesOf(s *sessioncore.Snapshot) *sizeCache {
	return s.Shared(sizesKey{}, func() any { return &sizeCache{} }).(*sizeCache)
}

// in returns the size of a part in a transcript.
func (p *entrySize) in(part shownEntry, w *renderer) int64 {
	n := int64(p.body) + int64(p.blobs)*int64(len(w.links.Blobs))
	if p.entries > 0 {
		n += int64(p.entries) * int64(len(w.entryLink(part.entry)))
	}
	if part.begins {
		n += int64(p.heading)
	}
	return n
}

// of returns the sizes of the entries of a path.
func (t *sizeCache) of(s *sessioncore.Snapshot, path []sessioncore.Entry) ([]entrySize, error) {
	t.mu.Lock()
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
	err := s.ReadEntries(missing, func() func(int, rawjson.Value) error {
		w := newRenderer(s, Links{})
		w.measuring = true
		return func(i int, text rawjson.Value) error {
			heading, body, size, err := w.render(missing[i], askedBy[i], text)
			if err != nil {
				return err
			}
			size.body, size.heading = uint32(len(body)), uint16(len(heading))
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
