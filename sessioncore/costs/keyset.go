package costs

import (
	"fmt"
	"slices"

	"sessionfs/sessioncore/budget"
)

const (
	// maxKeys bounds the answers that are added up at once: some 150 MiB of keys, the work of a large team for years.
	maxKeys = 16 << 20
	// leastRecent is the number of keys from which on recent ones are sorted among the others.
	leastRecent = 4096
	// recentShare is the part of all keys that recent ones may be, which take more than twice the memory.
	recentShare = 16
)

// keySet is a set of keys that takes 8 to 10 bytes for each: a sorted list, and the keys that were added since it was sorted.
type keySet struct {
	sorted []uint64
	recent map[uint64]struct{}
}

// has reports whether a key was added.
func (s *keySet) has(key uint64) bool {
	if _, ok := s.recent[key]; ok {
		return true
	}
	_, ok := slices.BinarySearch(s.sorted, key)
	return ok
}

// add adds keys. The error wraps budget.ErrNoMemory if there are too many.
func (s *keySet) add(keys []uint64) error {
	if s.recent == nil {
		s.recent = map[uint64]struct{}{}
	}
	for _, key := range keys {
		if !s.has(key) {
			s.recent[key] = struct{}{}
		}
	}
	if n := len(s.recent); n < max(leastRecent, len(s.sorted)/recentShare) {
		return nil
	} else if len(s.sorted)+n > maxKeys {
		return fmt.Errorf("%w: there are more than %d answers; add up fewer sessions at once", budget.ErrNoMemory, maxKeys)
	}
	all := append(make([]uint64, 0, len(s.sorted)+len(s.recent)), s.sorted...)
	for key := range s.recent {
		all = append(all, key)
	}
	slices.Sort(all)
	s.sorted = all
	clear(s.recent)
	return nil
}
