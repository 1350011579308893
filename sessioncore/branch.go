package sessioncore

import (
	"slices"
	"sync"
)

// Branch is the path from a root to an entry, as branches/<id>/ shows it. It is the snapshot's, and of use
// as long as that is held.
type Branch struct {
	snap    *Snapshot
	entries []Entry

	mu     sync.Mutex // guards layout
	layout *branchLayout
}

// maxBranches is how many paths a snapshot keeps: those that were looked at last, so that looking up each
// name in path/ does not walk the path each time. They take 4 bytes an entry each, and together less than
// the records of the same entries.
const maxBranches = 4

// Branch returns the path to an entry. Those asked for last are kept.
func (s *Snapshot) Branch(e Entry) *Branch {
	s.branchMu.Lock()
	defer s.branchMu.Unlock()
	isOf := func(b *Branch) bool { return b.entries[len(b.entries)-1] == e }
	if i := slices.IndexFunc(s.branches, isOf); i >= 0 {
		b := s.branches[i]
		s.branches = append(slices.Delete(s.branches, i, i+1), b)
		return b
	}
	if len(s.branches) == maxBranches {
		s.branches = slices.Delete(s.branches, 0, 1)
	}
	b := &Branch{snap: s, entries: s.Path(e)}
	s.branches = append(s.branches, b)
	return b
}

// Entries returns the entries from the root on; the caller does not change them.
func (b *Branch) Entries() []Entry { return b.entries }
