package sessioncore

import (
	"bytes"
	"context"
	"sort"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// recRendered are the flags of entries with files that differ from the bytes of the session file.
const recRendered = recMigrated | recManyLines

// FileRange is a range of the backing file, in bytes.
type FileRange struct{ Offset, Size int64 }

// EntryRange returns the range of an entry's file in the backing file, with its newline. ok is
// false for the few entries that are rendered or do not end their line.
func (s *Snapshot) EntryRange(e Entry) (r FileRange, ok bool) {
	rec := &s.records[e]
	isRendered := rec.flags&recRendered != 0
	endsLine := rec.flags&recEndsLine != 0
	withNewline := FileRange{Offset: rec.off, Size: int64(rec.size) + 1}
	return withNewline, endsLine && !isRendered
}

// RefersToBlobs reports whether an entry may refer to blobs.
func (s *Snapshot) RefersToBlobs(e Entry) bool { return s.records[e].flags&recBlob != 0 }

// MigratedRange returns the range of an entry's text in the backing file, without a newline. ok is
// false for entries that no migration changes.
func (s *Snapshot) MigratedRange(e Entry) (r FileRange, ok bool) {
	rec := &s.records[e]
	return FileRange{Offset: rec.off, Size: int64(rec.size)}, rec.flags&recMigrated != 0
}

// EntryState identifies the content of one or several entries' files by size and checksum.
type EntryState struct {
	Size int64  // in bytes
	Sum  uint64 // CRC-32C of the text; of several, derived from theirs
}

// add adds the state of the next entry.
func (s *EntryState) add(e EntryState) {
	s.Size += e.Size
	s.Sum = mixSum(mixSum(s.Sum, uint64(e.Size)), e.Sum)
}

// mixSum adds a number to a sum that depends on the order: a step of FNV-1a with its 64-bit prime, but
// for 8 bytes at a time. The shift mixes the high bits of the sum, which a multiplication never moves down.
func mixSum(sum, n uint64) uint64 { return (sum ^ n ^ sum>>29) * 0x100000001b3 }

// EntryState returns the state of an entry's file. It reads the entry only if a migration changes
// it.
func (s *Snapshot) EntryState(e Entry) (EntryState, error) {
	rec := &s.records[e]
	if rec.flags&recMigrated == 0 {
		asIndexed := EntryState{
			Size: int64(rec.size) + 1, // OneLine keeps the size
			Sum:  uint64(rec.crc),
		}
		return asIndexed, nil
	}
	text, err := s.ShownText(e)
	migrated := EntryState{
		Size: int64(len(text)) + 1,
		Sum:  uint64(jsonl.Checksum(text)),
	}
	return migrated, err
}

// EntryDocument returns an entry's file in entries/: the text as persisted and a newline
// (docs/design.md, entries/).
func (s *Snapshot) EntryDocument(e Entry) (*document.Document, error) {
	doc, _, err := s.entriesDocument(context.Background(), []Entry{e})
	return doc, err
}

// entriesDocument returns the files of entries in a row, and the state of all. Entries that are
// adjacent in the session file become one piece. The error is one of EntryState or of ctx; with it
// there is no document.
func (s *Snapshot) entriesDocument(ctx context.Context, entries []Entry) (*document.Document, EntryState, error) {
	m := &entriesMaker{snap: s, entries: entries}
	doc := document.New(s, nil, m)
	for i, e := range entries {
		state, err := s.EntryState(e)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			doc.Close()
			return nil, m.state, err
		}
		m.state.add(state)
		r, isRange := s.EntryRange(e)
		if isRange {
			doc.AddRange(r.Offset, r.Size)
		} else {
			piece := int32(i) + 1 // as Make expects it
			doc.AddMade(piece, state.Size)
		}
	}
	return doc, m.state, nil
}

// entriesMaker makes the entries of a document that differ from the bytes of the file.
type entriesMaker struct {
	snap    *Snapshot
	entries []Entry
	state   EntryState
}

// Make implements document.Maker. A piece is 1 + the index of its entry.
func (m *entriesMaker) Make(dst []byte, piece int32) ([]byte, error) {
	text, err := m.snap.ShownText(m.entries[piece-1])
	return append(append(dst, text...), '\n'), err
}

// Continues implements document.Maker: the first entries have the content of the earlier ones.
func (m *entriesMaker) Continues(earlier document.Maker) bool {
	old, ok := earlier.(*entriesMaker)
	if !ok || len(m.entries) < len(old.entries) {
		return false
	}
	var state EntryState
	for _, e := range m.entries[:len(old.entries)] {
		entry, err := m.snap.EntryState(e)
		if err != nil {
			return false
		}
		state.add(entry)
	}
	return state == old.state
}

// Branch is the path from a root to an entry, as branches/<id>/ shows it. It is valid until its
// snapshot is released. It is safe for concurrent use.
type Branch struct {
	snap    *Snapshot
	entries []Entry
	state   atomic.Pointer[EntryState] // of entries.jsonl; nil until it was made
}

// maxBranches bounds the paths that a snapshot caches for lookups in path/. They take 4 bytes per
// entry each, together less than the records of the same entries.
const maxBranches = 4

// Branch returns the path to an entry, which must not be NoEntry. The paths used last are cached.
func (s *Snapshot) Branch(e Entry) *Branch {
	s.branchMu.Lock()
	defer s.branchMu.Unlock()
	if s.branches == nil {
		s.branches, _ = simplelru.NewLRU[Entry, *Branch](maxBranches, nil)
	}
	b, known := s.branches.Get(e)
	if !known {
		b = &Branch{snap: s, entries: s.Path(e)}
		s.branches.Add(e, b)
	}
	return b
}

// Entries returns the entries in order from the root. Callers must not modify the slice.
func (b *Branch) Entries() []Entry { return b.entries }

// EntriesState returns the state of the branch's entries.jsonl, the files in entries/ in a row. It
// reads only entries that a migration changes.
func (b *Branch) EntriesState(ctx context.Context) (EntryState, error) {
	known := b.state.Load()
	if known != nil {
		return *known, nil
	}
	doc, state, err := b.EntriesDocument(ctx)
	if err == nil {
		doc.Close()
	}
	return state, err
}

// EntriesDocument returns the branch's entries.jsonl and its state, which it caches. Callers must
// close the document. Errors come from reading an entry or from ctx.
func (b *Branch) EntriesDocument(ctx context.Context) (*document.Document, EntryState, error) {
	doc, state, err := b.snap.entriesDocument(ctx, b.entries)
	if err == nil {
		b.state.Store(&state)
	}
	return doc, state, err
}

// ShownText returns the text of an entry's file in entries/: migrated, on one line, no newline.
// Errors come from EntryText.
func (s *Snapshot) ShownText(e Entry) (rawjson.Value, error) {
	rec := &s.records[e]
	text, err := s.EntryText(e)
	if err != nil {
		return nil, err
	}
	if rec.flags&recMigrated != 0 {
		text = s.migrated(rec, text)
	}
	return OneLine(text), nil
}

// OneLine returns text with its line breaks replaced by as many blanks, so that it keeps its size. It
// does not change text itself.
func OneLine(text rawjson.Value) rawjson.Value {
	if !manyLines(text) {
		return text
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("  "))
	return bytes.ReplaceAll(text, []byte("\n"), []byte(" "))
}

// EntryReader reads entries into one buffer. It is not safe for concurrent use.
type EntryReader struct {
	s   *Snapshot
	buf []byte
}

// NewEntryReader returns a reader of a snapshot's entries.
func NewEntryReader(s *Snapshot) EntryReader { return EntryReader{s: s} }

// Read returns an entry's text, valid until the next Read. The error wraps storage.ErrStale if the
// checksum does not match.
func (r *EntryReader) Read(e Entry) (rawjson.Value, error) {
	rec := &r.s.records[e]
	size := int(rec.size)
	isTooShort := cap(r.buf) < size
	isTooBig := cap(r.buf) > jsonl.KeepBuffer // of a long entry: its memory is not kept
	if isTooShort || isTooBig {
		doubled := min(2*cap(r.buf), jsonl.ChunkSize) // so that growing entries cause few allocations
		r.buf = make([]byte, max(size, doubled))
	}
	text := r.buf[:size:size]
	err := storage.ReadFull(r.s.index.file, text, rec.off)
	if err != nil {
		return nil, err
	}
	return text, r.s.check(e, text)
}

// EntryAt returns the entry with the byte at an offset of the file, or NoEntry.
func (s *Snapshot) EntryAt(off int64) Entry {
	next := sort.Search(len(s.records), func(i int) bool {
		return s.records[i].off > off
	})
	if next == 0 {
		return NoEntry
	}
	last := next - 1
	if off >= s.records[last].end() {
		return NoEntry
	}
	return Entry(last)
}
