package sessioncore

import (
	"slices"
	"sync"
)

// Branch is the path from a root to an entry, as branches/<id>/ shows it. It belongs to a snapshot and is valid
// until that is released. It is safe for concurrent use.
type Branch struct {
	snap    *Snapshot
	entries []Entry

	mu     sync.Mutex // guards layout
	layout *branchLayout
}

// maxBranches is the number of paths that a snapshot caches, so that looking up each name in path/ does not walk
// the path again. They take 4 bytes per entry each, together less than the records of the same entries.
const maxBranches = 4

// Branch returns the path to an entry, which must not be NoEntry. The paths used last are cached.
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

// Entries returns the entries in order from the root. Callers must not modify the slice.
func (b *Branch) Entries() []Entry { return b.entries }
