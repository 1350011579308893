package sessioncore

// SameText reports whether entry e of s and entry f of t have the same text. In snapshots of one index, an entry
// never changes.
func SameText(s *Snapshot, e Entry, t *Snapshot, f Entry) bool {
	if e == NoEntry || f == NoEntry {
		return e == f
	}
	if s.index == t.index {
		return e == f
	}
	a, b := &s.records[e], &t.records[f]
	return a.size == b.size && a.crc == b.crc
}

// EndsBranch reports whether a branch ends in e: e is a tip, or it is the leaf, below which the session goes on.
func (s *Snapshot) EndsBranch(e Entry) bool {
	if leaf, err := s.Leaf(); err == nil && leaf == e {
		return true
	}
	return s.Tree().IsTip(e)
}

// BranchBelow returns the end of the branch that ended in e in an earlier snapshot: the leaf if that is below e,
// otherwise e.
func (s *Snapshot) BranchBelow(e Entry) Entry {
	leaf, err := s.Leaf()
	if err != nil || leaf == NoEntry || leaf == e {
		return e
	}
	for _, above := range s.Branch(leaf).entries {
		if above == e {
			return leaf
		}
	}
	return e
}
