package sessioncore

import "strings"

// A file that was opened goes on with a newer version of what it shows only where that begins with all that
// the older one holds. Both are compared by what they are made of: neither is rendered for it.

// Continues reports whether d begins with all of old. It is made for documents of text, and transcripts;
// others continue nothing but the empty document.
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
		case before.made != 0: // and so is all that follows
			return now.made != 0 && now.at == before.at && d.maker.Continues(old.maker)
		case before.text == "" || now.text == "":
			return false
		case last && !strings.HasPrefix(now.text, before.text), !last && now.text != before.text:
			return false
		}
	}
	return true
}

// SameText reports whether two entries, each of its snapshot, have one text. In snapshots of one index an
// entry never changes.
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

// Continues reports whether r begins with all of old.
func (r *BranchEntries) Continues(old *BranchEntries) bool {
	n := len(old.path)
	if len(r.path) < n {
		return false
	}
	var state BranchState
	for _, e := range r.path[:n] {
		entry, err := r.snap.EntryState(e)
		if err != nil {
			return false
		}
		state.add(entry)
	}
	return state == old.layout.state
}

// EndsBranch reports whether a branch ends in an entry: it is a tip, or the leaf, under which the session
// goes on.
func (s *Snapshot) EndsBranch(e Entry) bool {
	if leaf, err := s.Leaf(); err == nil && leaf == e {
		return true
	}
	tree := s.Tree()
	return tree.Has(e) && len(tree.Children(e)) == 0
}

// BranchBelow returns where the branch that ended in an entry has got to: the leaf, where that is the entry
// or comes after it, else the entry.
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
