package sessioncore

import (
	"sync"
	"sync/atomic"
)

// sharedFacts holds what readers found out about entries beyond the index. All snapshots of one index share
// it, since an entry that two of them show is the same in both.
type sharedFacts struct {
	// overwritten: an entry was found not to be what was indexed, so the file must be read as a whole.
	overwritten atomic.Bool

	mu    sync.Mutex // guards facts
	facts map[any]any
}

// Shared returns what a reader of snapshots keeps for the index that s is a view of, made by create the first
// time. As in a context.Context, key is of a type of the reader's own. The fact is used by several goroutines,
// and lives as long as the index does.
func (s *Snapshot) Shared(key any, create func() any) any {
	s.shared.mu.Lock()
	defer s.shared.mu.Unlock()
	fact, ok := s.shared.facts[key]
	if !ok {
		if s.shared.facts == nil {
			s.shared.facts = map[any]any{}
		}
		fact = create()
		s.shared.facts[key] = fact
	}
	return fact
}
