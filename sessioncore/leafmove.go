package sessioncore

import (
	"context"
	"fmt"
)

// MoveLeaf makes an entry the current position, as the client's branch does: durably, by one appended
// entry, or in memory with the option LeafMemory (design.md, leaf). Where the leaf is there already
// nothing is written. ErrNotFound: no entry has that id.
func (w *Writer) MoveLeaf(ctx context.Context, s *Session, id string) error {
	return w.moveLeaf(ctx, s, &id)
}

// ResetLeaf puts the current position before the first entry: the next append makes a new root.
func (w *Writer) ResetLeaf(ctx context.Context, s *Session) error {
	return w.moveLeaf(ctx, s, nil)
}

func (w *Writer) moveLeaf(ctx context.Context, s *Session, target *string) error {
	if w.opts.LeafMemory {
		return w.moveInMemory(s, target)
	}
	if moved, err := s.movesTo(target); err == nil && !moved && !w.opts.ReadOnly {
		return nil // without the lock, which would change the directory's times
	}
	written := false
	err := w.change(ctx, s, func(c *change) error {
		written = false
		moved, err := c.snap.moves(target)
		if err != nil || !moved {
			return err
		}
		b, err := w.batch(c.snap)
		if err != nil {
			return err
		}
		written = true
		return c.commit(c.snap.dialect.moveLine(b, b.newID(), target), false)
	})
	if !written {
		return err
	}
	return w.synced(ctx, s, err)
}

// leafMoveType is the customType of omp's entries that record a move of the leaf (design.md, leaf).
const leafMoveType = "sessionfs/leaf"

// ompMoveTarget: a custom entry of our own, since omp has none for it.
func ompMoveTarget(text value) (target value, isMove bool) {
	if !text.member("customType").is(leafMoveType) {
		return nil, false
	}
	return text.member("data").member("targetId"), true
}

// ompMoveLine is a move to a target. It hangs under that: omp, which resumes at the last line, goes on there.
func ompMoveLine(b *batch, id string, target *string) []byte {
	line := appendQuoted([]byte(`{"type":"custom","customType":`), leafMoveType)
	line = appendReference(append(line, `,"data":{"targetId":`...), target)
	line = appendQuoted(append(line, `},"id":`...), id)
	line = appendReference(append(line, `,"parentId":`...), target)
	line = b.appendNow(append(line, `,"timestamp":`...))
	return append(line, "}\n"...)
}

// operatorMoveTarget: operator's leaf entry is nothing but a move (format.md, operator dialect).
func operatorMoveTarget(text value) (target value, isMove bool) {
	return text.member("target_id"), true
}

// operatorMoveLine is a leaf entry. It hangs under the leaf before, as in the seed.
func operatorMoveLine(b *batch, id string, target *string) []byte {
	line := b.begin(TypeLeaf, id, b.leaf)
	line = appendReference(append(line, `,"`+b.dialect.target+`":`...), target)
	return append(line, "}\n"...)
}

// moves reports whether a target is another position than the current one.
func (s *Snapshot) moves(target *string) (bool, error) {
	leaf, err := s.Leaf()
	if err != nil {
		return false, err
	}
	e := NoEntry
	if target != nil {
		if e, err = s.Find(*target); err != nil {
			return false, err
		}
	}
	return e != leaf, nil
}

// movesTo is moves for what the session is now.
func (s *Session) movesTo(target *string) (bool, error) {
	snap, err := s.Acquire()
	if err != nil {
		return false, err
	}
	defer snap.Release()
	return snap.moves(target)
}

// leafMove is a position that is held in memory, for as long as the file's last entry stays the last.
type leafMove struct {
	last   uint32 // the snapshot's lastID when the leaf was moved
	lastID string
	target *string // nil: before the first entry
}

// holds reports whether nothing was added to the session since the move.
func (m *leafMove) holds(s *Snapshot) bool {
	return m.last == s.lastID && m.lastID == s.lastText()
}

// lastText is the id of the last entry that has one, "" without entries.
func (s *Snapshot) lastText() string {
	if s.lastID == 0 {
		return ""
	}
	return s.idText(s.records[s.lastID-1].id)
}

// moveInMemory notes the move in the session, and makes a snapshot that knows of it the current one.
func (w *Writer) moveInMemory(s *Session, target *string) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", ErrReadOnly, s.name)
	}
	for range staleTries {
		if done, err := s.tryMove(target); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s changes all the time", ErrStale, s.name)
}

// tryMove is not done where the session was added to in between.
func (s *Session) tryMove(target *string) (done bool, err error) {
	snap, err := s.Acquire()
	if err != nil {
		return false, err
	}
	defer snap.Release()
	if moved, err := snap.moves(target); err != nil || !moved {
		return true, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	move := &leafMove{last: snap.lastID, lastID: snap.lastText(), target: target}
	cur := s.current.Load()
	if cur == nil || s.index == nil {
		s.move = move // whoever reads the file next takes it into account
		return true, nil
	}
	if !move.holds(cur) {
		return false, nil
	}
	s.move = move
	cur.pin.refs.Add(1)
	moved := s.index.view(cur.pin, cur.stat)
	moved.readAt, moved.headSum, moved.ends, moved.endsLine, moved.move = cur.readAt, cur.headSum, cur.ends, cur.endsLine, move
	s.install(moved)
	moved.Release()
	return true, nil
}

// takeMove gives a new snapshot the position that is held in memory, or forgets that one. The caller
// holds s.mu.
func (s *Session) takeMove(snap *Snapshot) {
	if s.move != nil && !s.move.holds(snap) {
		s.move = nil
	}
	snap.move = s.move
}
