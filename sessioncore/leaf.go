package sessioncore

import (
	"context"

	"sessionfs/sessioncore/internal/rawjson"
)

// LeafMoveType is the customType of the entries that move the leaf in an omp session
// (docs/design.md, leaf).
const LeafMoveType = "sessionfs/leaf"

// MoveTarget returns the target id of a move of the leaf by an entry of type MoveType, JSON null
// for a move before the first entry; isMove is false for other entries.
func (d *Dialect) MoveTarget(text rawjson.Value) (target rawjson.Value, isMove bool) {
	if d == Operator { // every leaf entry is a move (docs/format.md, Operator dialect)
		return text.Member("target_id"), true
	}
	// omp has no entry for it, so sessionfs writes a custom one.
	if !text.Member("customType").Is(LeafMoveType) {
		return nil, false
	}
	return text.Member("data").Member("targetId"), true
}

// Moves reports whether target, an id or nil for the position before the first entry, differs from
// the leaf. Errors come from Leaf and Verify.
func (s *Snapshot) Moves(target *string) (bool, error) {
	leaf, err := s.Leaf()
	if err != nil {
		return false, err
	}
	e := NoEntry
	if target != nil {
		e, err = s.Verify(*target)
		if err != nil {
			return false, err
		}
	}
	return e != leaf, nil
}

// leafMove is a position of the leaf in memory, in effect until an entry is added to the file.
type leafMove struct {
	last   uint32  // lastID of the snapshot when the leaf was moved
	lastID string  // the text of that id, as another file may have as many entries
	target *string // nil: before the first entry
}

// isCurrent reports whether no entry was added to the session since the move.
func (m *leafMove) isCurrent(s *Snapshot) bool {
	return m.last == s.lastID && m.lastID == s.lastIDText()
}

// lastIDText returns the id of the last entry that has one, "" if there is none.
func (s *Snapshot) lastIDText() string {
	if s.lastID == 0 {
		return ""
	}
	return s.idText(s.records[s.lastID-1].id)
}

// TryMove moves the leaf to target, an id or nil for the position before the first entry, in
// memory, until an entry is added to the session. done is false if one was added during the call;
// the caller may retry. Errors come from Acquire and Snapshot.Moves.
func (s *Session) TryMove(ctx context.Context, target *string) (done bool, err error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer snap.Release()
	isMove, err := snap.Moves(target)
	if err != nil || !isMove {
		return true, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	move := &leafMove{
		last:   snap.lastID,
		lastID: snap.lastIDText(),
		target: target,
	}
	cur := s.current.Load()
	if cur == nil || !cur.retain() {
		s.move = move // the next refresh applies it
		return true, nil
	}
	defer cur.Release()
	if !move.isCurrent(cur) { // an entry was added before the lock was held
		return false, nil
	}
	s.move = move
	moved := s.snapshotOf(cur.index, cur.fingerprints)
	s.install(moved)
	moved.Release()
	return true, nil
}

// Leaf returns the current position of the conversation, NoEntry before the first entry. It is the
// last entry with an id or, if that entry records a move of the leaf, its target (docs/design.md,
// leaf). A position set with TryMove takes precedence. The error is one of Confirm, or wraps
// ErrNotFound.
func (s *Snapshot) Leaf() (e Entry, err error) {
	switch {
	case s.move == nil:
		e = s.Resumed()
	case s.move.target == nil:
		return NoEntry, nil
	default:
		e, err = s.Find(*s.move.target)
	}
	if e != NoEntry && err == nil {
		err = s.Confirm(context.Background(), e)
	}
	return e, err
}

// Resumed returns the position where a client resumes the session, regardless of TryMove.
func (s *Snapshot) Resumed() Entry { return s.newest(s.leafID) }
