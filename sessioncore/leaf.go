package sessioncore

import "sessionfs/sessioncore/internal/rawjson"

// LeafMoveType is the customType of omp's entries that record a move of the leaf (docs/design.md, leaf).
const LeafMoveType = "sessionfs/leaf"

// MoveTarget returns where an entry of the type moveType moves the leaf to, and whether it moves it at all.
func (d *Dialect) MoveTarget(text rawjson.Value) (target rawjson.Value, isMove bool) {
	if d == Operator { // its leaf entry is nothing but a move (docs/format.md, Operator dialect)
		return text.Member("target_id"), true
	}
	// omp has no entry for it: a custom one of ours.
	if !text.Member("customType").Is(LeafMoveType) {
		return nil, false
	}
	return text.Member("data").Member("targetId"), true
}

// Moves reports whether a target is another position than the current one.
func (s *Snapshot) Moves(target *string) (bool, error) {
	leaf, err := s.Leaf()
	if err != nil {
		return false, err
	}
	e := NoEntry
	if target != nil {
		if e, err = s.Verify(*target); err != nil {
			return false, err
		}
	}
	return e != leaf, nil
}

// MovesTo is moves for what the session is now.
func (s *Session) MovesTo(target *string) (bool, error) {
	snap, err := s.Acquire()
	if err != nil {
		return false, err
	}
	defer snap.Release()
	return snap.Moves(target)
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

// TryMove is not done where the session was added to in between.
func (s *Session) TryMove(target *string) (done bool, err error) {
	snap, err := s.Acquire()
	if err != nil {
		return false, err
	}
	defer snap.Release()
	if moved, err := snap.Moves(target); err != nil || !moved {
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
	moved.readAt, moved.headSum, moved.fingerprints, moved.endsLine, moved.move = cur.readAt, cur.headSum, cur.fingerprints, cur.endsLine, move
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

// Leaf returns the current position of the conversation, NoEntry before the first entry: the last
// entry with an id, or where that one records a move of the leaf, its target (docs/design.md, leaf).
func (s *Snapshot) Leaf() (Entry, error) {
	switch {
	case s.move == nil:
		return s.newest(s.leafID), nil
	case s.move.target == nil:
		return NoEntry, nil
	}
	return s.Find(*s.move.target)
}
