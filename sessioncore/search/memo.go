package search

import (
	"slices"

	"sessionfs/sessioncore/storage"
)

// memo is what is remembered of a search. It only saves reading files that are unchanged. It does not change.
type memo struct {
	key    string
	found  map[string]*Found // by file
	result *Result           // what was found last; nil if nothing was
}

// keyOf returns the key for what is remembered of a session, or of all of them if name is empty.
func keyOf(m Matcher, name string) string { return name + "\x00" + m.Key() }

// memo returns what is remembered for a key.
func (s *Searcher) memo(key string) *memo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.IndexFunc(s.remembered, func(m *memo) bool { return m.key == key }); i >= 0 {
		return s.remembered[i]
	}
	return &memo{}
}

// Last returns what Search, or SearchIn for a name, returned last for a matcher, nil if that is not remembered. Files may
// have changed since.
func (s *Searcher) Last(m Matcher, name string) *Result { return s.memo(keyOf(m, name)).result }

// remember keeps a memo, and forgets others where that is too much.
func (s *Searcher) remember(m *memo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remembered = append(slices.DeleteFunc(s.remembered, func(old *memo) bool { return old.key == m.key }), m)
	for len(s.remembered) > maxRemembered || s.held.Resize(s.size()) != nil {
		s.remembered = s.remembered[1:]
	}
}

// size is about how many bytes is remembered. Callers must hold s.mu.
func (s *Searcher) size() (n int64) {
	for _, m := range s.remembered {
		for _, f := range m.found {
			n += f.size()
		}
		if m.result != nil {
			n += int64(len(m.result.Hits)) * hitSize
		}
	}
	return n
}

// isOf reports whether it is what would be found in a file in that state.
func (f *Found) isOf(st storage.Stat) bool {
	return f != nil && f.Err == nil && f.token == st.Token && !st.Racy(f.readAt)
}

// hitSize is what a Hit takes besides its texts, in bytes.
const hitSize = 160

// size is about how many bytes it takes.
func (f *Found) size() int64 {
	n := int64(160 + len(f.File))
	for i := range f.Hits {
		n += int64(hitSize + len(f.Hits[i].Line) + len(f.Hits[i].Entry) + len(f.Hits[i].Prompt))
	}
	return n
}
