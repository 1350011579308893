package sessioncore

import "strings"

// An open file switches to a newer version of its content only if that begins with the whole older content. The two
// are compared by what they are made of; neither is rendered for that.

// Continues reports whether the content of d begins with that of old. What follows the text at the beginning of both
// is compared by the Maker; without one, documents of more than text do not continue each other.
func (d *Document) Continues(old *Document) bool {
	if d.size < old.size {
		return false
	}
	for i, before := range old.pieces {
		if i >= len(d.pieces) {
			return false
		}
		now, last := d.pieces[i], i+1 == len(old.pieces)
		switch {
		case before.text == "": // and the maker knows all that follows
			return now.text == "" && now.at == before.at && d.maker != nil && d.maker.Continues(old.maker)
		case last && !strings.HasPrefix(now.text, before.text), !last && now.text != before.text:
			return false
		}
	}
	return true
}

// SameText reports whether entry e of s and entry f of t have the same text. In snapshots of one index, an entry
// never changes.
func SameText(s *Snapshot, e Entry, t *Snapshot, f Entry) bool {
	if e == NoEntry || f == NoEntry {
		return e == f
	}
	if s.shared == t.shared {
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
	tree := s.Tree()
	return tree.Has(e) && len(tree.Children(e)) == 0
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
