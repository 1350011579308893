package sessioncore

import (
	"context"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// EntryReader reads entries one after the other into the same buffer. It is not safe for concurrent use.
type EntryReader struct {
	s   *Snapshot
	buf []byte
}

// NewEntryReader returns a reader of a snapshot's entries.
func NewEntryReader(s *Snapshot) EntryReader { return EntryReader{s: s} }

// Read returns an entry's text, which is valid until the next Read. The error wraps storage.ErrStale if the text
// does not match its checksum.
func (r *EntryReader) Read(e Entry) (rawjson.Value, error) {
	rec := &r.s.records[e]
	if cap(r.buf) < int(rec.size) || cap(r.buf) > jsonl.KeepBuffer {
		r.buf = make([]byte, max(int(rec.size), jsonl.ChunkSize))
	}
	text := r.buf[:rec.size:rec.size]
	if err := storage.ReadFull(r.s.index.file, text, rec.off); err != nil {
		return nil, err
	}
	return text, r.s.check(e, text)
}

// readBatch is the number of entries that a goroutine takes at once.
const readBatch = 16

// ReadEntries reads entries in several goroutines. Each goroutine calls worker once, and calls the function that it
// returns with the text of entries[i], in no particular order. The text is valid during the call only. ReadEntries
// stops at the first error and returns it; when ctx is done, that is its error.
func (s *Snapshot) ReadEntries(ctx context.Context, entries []Entry, worker func() func(i int, text rawjson.Value) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var next atomic.Int64
	work := func() (err error) {
		defer storage.RecoverTo(&err)
		take := worker()
		r := NewEntryReader(s)
		for ctx.Err() == nil {
			end := int(next.Add(readBatch))
			for i := end - readBatch; i < min(end, len(entries)); i++ {
				text, err := r.Read(entries[i])
				if err == nil {
					err = take(i, text)
				}
				if err != nil {
					return err
				}
			}
			if end >= len(entries) {
				return nil
			}
		}
		return nil
	}
	var running sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), 4, (len(entries)+readBatch-1)/readBatch) {
		running.Go(func() {
			if err := work(); err != nil {
				stop(err)
			}
		})
	}
	running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// EntryAt returns the entry whose text has the byte at an offset of the file, or NoEntry.
func (s *Snapshot) EntryAt(off int64) Entry {
	next := sort.Search(len(s.records), func(i int) bool { return s.records[i].off > off })
	if next == 0 || off >= s.records[next-1].off+int64(s.records[next-1].size) {
		return NoEntry
	}
	return Entry(next - 1)
}
