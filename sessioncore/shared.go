package sessioncore

import (
	"sync"
	"sync/atomic"
)

// sharedFacts holds what readers found out about entries beyond the index. All snapshots of one index share it: an
// entry that two of them show is the same in both.
type sharedFacts struct {
	// overwritten reports whether an entry was found not to be what was indexed, so that the file must be read as a
	// whole.
	overwritten atomic.Bool

	mu    sync.Mutex // guards facts
	facts map[any]any
}

// Shared returns the value that a reader of snapshots keeps under key for the index that s is a view of. It calls
// create to make the value on first use. As in a context.Context, key must be of a type of the reader's own. The
// value must be safe for concurrent use; it lives as long as the index.
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
