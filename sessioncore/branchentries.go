package sessioncore

import (
	"context"
	"io"
	"sort"
	"sync"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// branches/<id>/entries.jsonl is the concatenation of the files in entries/ of a branch's entries. It is never held
// in memory: adjacent entries of the session file are read with one call.

// branchLayout describes where the content of entries.jsonl comes from.
type branchLayout struct {
	runs  []branchRun
	state BranchState
}

// branchRun is a piece of entries.jsonl that ends where the next one begins. It is either a sequence of entries
// that follow each other both in the path and in the session file, with their newlines, or a single entry that does
// not end its line or is rendered.
type branchRun struct {
	at    int64 // offset in the document
	first int32 // index in the path of its first entry
}

// BranchState tells one content of a branch's entries.jsonl from another by size and checksum.
type BranchState struct {
	Size int64  // in bytes
	Sum  uint64 // derived from the checksums of the entries
}

// add adds the state of the next entry.
func (s *BranchState) add(e EntryState) {
	s.Size += e.Size
	s.Sum = mixSum(mixSum(s.Sum, uint64(e.Size)), uint64(e.Sum))
}

// EntriesState returns the state of the branch's entries.jsonl. Only entries that a migration changes are read for
// that.
func (b *Branch) EntriesState(ctx context.Context) (BranchState, error) {
	l, err := b.laidOut(ctx)
	if err != nil {
		return BranchState{}, err
	}
	return l.state, nil
}

// laidOut returns the layout of entries.jsonl. It is computed on first use.
func (b *Branch) laidOut(ctx context.Context) (*branchLayout, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.layout == nil {
		l := &branchLayout{}
		end := int64(-1) // end of the run in the file; -1 if the next entry begins a new run
		for place, e := range b.entries {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			state, err := b.snap.EntryState(e)
			if err != nil {
				return nil, err
			}
			r, whole := b.snap.EntryRange(e)
			if !whole || r.Offset != end {
				l.runs = append(l.runs, branchRun{l.state.Size, int32(place)})
			}
			if end = r.Offset + r.Size; !whole {
				end = -1
			}
			l.state.add(state)
		}
		b.layout = l
	}
	return b.layout, nil
}

// mixSum adds a number to a sum that depends on the order (FNV-1a, 8 bytes at a time).
func mixSum(sum, n uint64) uint64 { return (sum ^ n ^ sum>>29) * 0x100000001b3 }

// BranchEntries reads a branch's entries.jsonl. It shows one snapshot, which it references until Close. It is safe
// for concurrent use.
type BranchEntries struct {
	snap   *Snapshot
	path   []Entry
	layout *branchLayout

	mu sync.Mutex // guards the fields below
	// rendered is the text, with its newline, of the entry rendered last.
	rendered   []byte
	renderedOf Entry
	// checked is the entry that was last found unchanged in a later state of the file.
	checked   Entry
	checkedIn storage.Token
}

// OpenEntries opens the branch's entries.jsonl. Callers must call Close.
func (b *Branch) OpenEntries(ctx context.Context) (*BranchEntries, error) {
	layout, err := b.laidOut(ctx)
	if err != nil {
		return nil, err
	}
	b.snap.Retain()
	return &BranchEntries{snap: b.snap, path: b.entries, layout: layout, renderedOf: NoEntry, checked: NoEntry}, nil
}

// Size returns the size in bytes.
func (r *BranchEntries) Size() int64 { return r.layout.state.Size }

// Close releases the snapshot.
func (r *BranchEntries) Close() { r.snap.Release() }

// ReadAt implements io.ReaderAt. The error wraps storage.ErrStale if the content no longer exists.
func (r *BranchEntries) ReadAt(p []byte, off int64) (n int, err error) {
	want := len(p)
	p = p[:min(int64(want), max(0, r.Size()-off))]
	for run := r.runAt(off); n < len(p); run++ {
		at, end := r.layout.runs[run].at, r.endOf(run)
		part := p[n:min(int64(len(p)), end-off)]
		if err := r.readRun(run, part, off+int64(n)-at); err != nil {
			return n, err
		}
		n += len(part)
	}
	if err := r.check(p, off); err != nil {
		return 0, err
	}
	if n < want {
		return n, io.EOF
	}
	return n, nil
}

// runAt returns the index of the run that contains an offset.
func (r *BranchEntries) runAt(off int64) int {
	return sort.Search(len(r.layout.runs), func(i int) bool { return r.layout.runs[i].at > off }) - 1
}

// endOf returns the offset in the document at which a run ends.
func (r *BranchEntries) endOf(run int) int64 {
	if run+1 < len(r.layout.runs) {
		return r.layout.runs[run+1].at
	}
	return r.Size()
}

// readRun fills p from a run, starting at off within it.
func (r *BranchEntries) readRun(run int, p []byte, off int64) error {
	e := r.path[r.layout.runs[run].first]
	rec := &r.snap.records[e]
	if rec.flags&recRendered != 0 {
		return r.readRendered(e, p, off)
	}
	if _, whole := r.snap.EntryRange(e); !whole && off+int64(len(p)) > int64(rec.size) {
		p[len(p)-1] = '\n'
		p = p[:len(p)-1]
	}
	return storage.ReadFull(r.snap.pin.obj, p, rec.off+off)
}

// readRendered fills p from an entry that is not shown with the bytes of the file.
func (r *BranchEntries) readRendered(e Entry, p []byte, off int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renderedOf != e {
		text, err := r.snap.ShownText(e)
		if err != nil {
			return err
		}
		r.rendered, r.renderedOf = append(text, '\n'), e
	}
	if copy(p, r.rendered[min(off, int64(len(r.rendered))):]) < len(p) {
		return r.snap.overwritten("entry " + r.snap.Name(e))
	}
	return nil
}

// check checks what was read into p from off on, if the file changed since it was indexed: each entry that p shows
// must still have its text (see Snapshot.ReadEntry).
func (r *BranchEntries) check(p []byte, off int64) error {
	st, err := r.snap.pin.obj.Stat()
	if err != nil || st.Token == r.snap.stat.Token || len(p) == 0 {
		return err
	}
	for run := r.runAt(off); run < len(r.layout.runs) && r.layout.runs[run].at < off+int64(len(p)); run++ {
		if err := r.checkRun(run, p, off, st.Token); err != nil {
			return err
		}
	}
	return nil
}

// checkRun checks the entries of a run that p, read from off on, shows. now is the current token of the file.
func (r *BranchEntries) checkRun(run int, p []byte, off int64, now storage.Token) error {
	first, last := r.layout.runs[run].first, int32(len(r.path))
	if run+1 < len(r.layout.runs) {
		last = r.layout.runs[run+1].first
	}
	entries := r.path[first:last]
	start := r.snap.records[entries[0]].off
	toDocument := r.layout.runs[run].at - start // from an offset in the file
	skip := sort.Search(len(entries), func(i int) bool { return r.snap.records[entries[i]].off+toDocument > off })
	for _, e := range entries[max(0, skip-1):] {
		rec := &r.snap.records[e]
		from := rec.off + toDocument - off // in p
		to := from + int64(rec.size)
		switch {
		case from >= int64(len(p)):
			return nil
		case rec.flags&recRendered != 0: // checked when it was rendered
		case from >= 0 && to <= int64(len(p)):
			if jsonl.Checksum(p[from:to]) != rec.crc {
				return r.snap.overwritten("entry " + r.snap.Name(e))
			}
		default:
			if err := r.checkEntry(e, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkEntry checks an entry that a read shows a part of. The last entry checked is cached, for reads that go on in
// it.
func (r *BranchEntries) checkEntry(e Entry, now storage.Token) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.checked == e && r.checkedIn == now {
		return nil
	}
	if _, err := r.snap.EntryText(e); err != nil {
		return err
	}
	r.checked, r.checkedIn = e, now
	return nil
}
