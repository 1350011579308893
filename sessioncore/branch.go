package sessioncore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
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

const (
	// pathDigits is how many digits the places in path/ have at least.
	pathDigits = 6
	// maxFileName is the longest file name that file systems take, in bytes: what is in path/ can be copied.
	maxFileName = 255
	entrySuffix = ".json"
)

// PathName returns the name in path/ of the entry at a place, counted from 0: its number counted from 1,
// what it is, and the name of its file in entries/ (docs/design.md, branches/). Where that would be longer than
// file names are, what it is is cut further.
func (b *Branch) PathName(place int) string {
	e := b.entries[place]
	number := strconv.Itoa(place + 1)
	if n := pathDigits - len(number); n > 0 {
		number = "000000"[:n] + number
	}
	name := b.snap.Name(e)
	what := cutWhat(b.snap.What(e), maxFileName-len(number)-len(name)-len("--"+entrySuffix))
	return number + "-" + what + "-" + name + entrySuffix
}

// FindPathName returns the place of the entry that has a name in path/, or ErrNotFound.
func (b *Branch) FindPathName(name string) (place int, err error) {
	number, _, _ := strings.Cut(name, "-")
	if n, err := strconv.ParseUint(number, 10, 31); err == nil && n >= 1 && n <= uint64(len(b.entries)) {
		if place = int(n) - 1; b.PathName(place) == name {
			return place, nil
		}
	}
	return 0, fmt.Errorf("%w: %q", ErrNotFound, name)
}
