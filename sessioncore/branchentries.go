package sessioncore

import (
	"context"

	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// branches/<id>/entries.jsonl is the concatenation of the files in entries/ of a branch's entries.

// branchLayout is what entries.jsonl consists of.
type branchLayout struct {
	shown document.Document
	state BranchState
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

// mixSum adds a number to a sum that depends on the order (FNV-1a, 8 bytes at a time).
func mixSum(sum, n uint64) uint64 { return (sum ^ n ^ sum>>29) * 0x100000001b3 }

// EntriesState returns the state of the branch's entries.jsonl. Only entries that a migration changes are read for
// that.
func (b *Branch) EntriesState(ctx context.Context) (BranchState, error) {
	l, err := b.laidOut(ctx)
	if err != nil {
		return BranchState{}, err
	}
	return l.state, nil
}

// EntriesDocument returns the branch's entries.jsonl. Entries that follow each other both in the path and in the
// session file are one piece.
func (b *Branch) EntriesDocument(ctx context.Context) (*document.Document, error) {
	l, err := b.laidOut(ctx)
	if err != nil {
		return nil, err
	}
	return l.shown.Like(b.snap, &branchMaker{b.snap, b.entries, l.state}), nil
}

// laidOut returns the layout of entries.jsonl. It is computed on first use.
func (b *Branch) laidOut(ctx context.Context) (*branchLayout, error) {
	if err := storage.LockUntil(ctx, &b.mu); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if b.layout != nil {
		return b.layout, nil
	}
	l := &branchLayout{}
	d := &l.shown
	for place, e := range b.entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		now, err := b.snap.EntryState(e)
		if err != nil {
			return nil, err
		}
		l.state.add(now)
		rec := &b.snap.records[e]
		switch {
		case rec.flags&recRendered != 0:
			d.AddMade(int32(place)+1, now.Size)
		case rec.flags&recEndsLine != 0:
			d.AddRange(rec.off, now.Size)
		default:
			d.AddRange(rec.off, int64(rec.size))
			d.AddText("\n")
		}
	}
	b.layout = l
	return b.layout, nil
}

// branchMaker makes the entries of a branch that are not shown with the bytes of the file.
type branchMaker struct {
	snap  *Snapshot
	path  []Entry
	state BranchState
}

// Make implements document.Maker. A piece is 1 + the index in the path of its entry.
func (m *branchMaker) Make(dst []byte, piece int32) ([]byte, error) {
	text, err := m.snap.ShownText(m.path[piece-1])
	return append(append(dst, text...), '\n'), err
}

// Continues implements document.Maker: the path begins with entries of the same content.
func (m *branchMaker) Continues(earlier document.Maker) bool {
	old, ok := earlier.(*branchMaker)
	if !ok || len(m.path) < len(old.path) {
		return false
	}
	var state BranchState
	for _, e := range m.path[:len(old.path)] {
		entry, err := m.snap.EntryState(e)
		if err != nil {
			return false
		}
		state.add(entry)
	}
	return state == old.state
}
