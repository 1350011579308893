package view

import (
	"context"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// sizesKey is the key under which the snapshots of an index share a sizeCache.
type sizesKey struct{}

// sizeCache has the size of each rendered entry, so that a stat of a transcript renders each entry once,
// and after growth only the new ones. The snapshots of an index share it, since their entries never change.
type sizeCache struct {
	mu    sync.Mutex  // guards sizes; held while entries are rendered
	sizes []entrySize // by entry; zero if not rendered yet
}

// entrySize describes a rendered entry, in 28 bytes.
type entrySize struct {
	body    uint32            // bytes, without the prefixes of links
	speaker uint32            // see entryBlocks
	name    uint32            // a hash of the entry's name, which changes if a later entry has the same id
	asked   sessioncore.Entry // see entryBlocks; another one if the id of an entry above comes again
	heading uint16            // bytes of the heading, shown if a turn begins here
	naming  uint16            // bytes of the line that names the entry, shown if none begins here
	entries uint16            // number of links to the entry's file
	blobs   uint16            // number of links to blobs
	flags   turnFlags
}

// sizesOf returns the sizeCache of the snapshot's index.
func sizesOf(s *sessioncore.Snapshot) *sizeCache {
	return s.Shared(sizesKey{}, func() any { return &sizeCache{} }).(*sizeCache)
}

// in returns how many bytes the entry takes in a transcript.
func (p *entrySize) in(begins bool, links Links) int64 {
	opening := p.naming
	if begins {
		opening = p.heading
	}
	prefixes := int64(p.entries)*int64(len(links.Entries)) + int64(p.blobs)*int64(len(links.Blobs))
	return int64(p.body) + int64(opening) + prefixes
}

// sizeOf measures a rendered entry.
func sizeOf(b *entryBlocks, name uint32, scratch *[]byte) entrySize {
	var w markdownWriter
	length := func(blocks ...block) int {
		*scratch = w.append((*scratch)[:0], blocks...)
		return len(*scratch)
	}
	size := entrySize{
		body: uint32(length(b.body...)), heading: uint16(length(b.heading)), naming: uint16(length(b.naming)),
		speaker: b.speaker, name: name, asked: b.asked, flags: b.flags,
	}
	for _, it := range b.body {
		for _, s := range it.line {
			switch s.style {
			case linkStyle:
				size.entries++
			case imageStyle:
				size.blobs++
			}
		}
	}
	return size
}

// of returns the sizes of the entries of a branch. It renders those that are not cached.
func (t *sizeCache) of(ctx context.Context, s *sessioncore.Snapshot, entries []shownEntry) ([]entrySize, error) {
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
		return func(i int, text rawjson.Value) error {
			blocks, err := b.build(missing[i], askedBy[i], text)
			if err == nil {
				t.sizes[missing[i]] = sizeOf(blocks, hashOf(s.Name(missing[i])), &scratch)
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
