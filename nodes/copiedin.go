package nodes

import (
	"context"
	"sync"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
)

// maxCopiedIn is of how many files and directories it is remembered that they were copied in, some 200 bytes each. Of older
// ones it is forgotten first.
const maxCopiedIn = 20_000

// copiedIn is what was copied in since the mount began (docs/design.md section 2, Files copied in). Only that can be
// changed once more: its modes and times set, another version copied over it, an artifact removed.
type copiedIn struct {
	madeMu sync.Mutex // guards what follows
	made   map[string]made
	order  []string // names in made, the oldest first; some may be there no more
}

// made is a file or directory that was copied in.
type made struct {
	kind   layout.Copied // NotCopied for a directory
	token  storage.Token // as it was left
	thread uint32        // who copied it
	grown  bool          // the file was there, and something was added to it
	// growing says that it is being made, or that something is being added to it, for which it may be replaced: the token
	// does not count.
	growing bool
}

// noteMade remembers what has just been copied in under a name.
func (s *copiedIn) noteMade(ctx context.Context, name string, m made) {
	m.thread = threadOf(ctx)
	s.madeMu.Lock()
	defer s.madeMu.Unlock()
	_, known := s.made[name]
	if s.made == nil {
		s.made = map[string]made{}
	}
	s.made[name] = m
	if known {
		return
	}
	s.order = append(s.order, name)
	for len(s.made) > maxCopiedIn || len(s.order) > 2*maxCopiedIn {
		delete(s.made, s.order[0])
		s.order = s.order[1:]
	}
}

// forgetMade forgets what has been removed.
func (s *copiedIn) forgetMade(name string) {
	s.madeMu.Lock()
	defer s.madeMu.Unlock()
	delete(s.made, name)
}

// findMade returns what was copied in under a name, if the name still stands for the file or directory of a token.
func (s *copiedIn) findMade(name string, token storage.Token) (made, bool) {
	s.madeMu.Lock()
	defer s.madeMu.Unlock()
	m, ok := s.made[name]
	return m, ok && (m.growing || m.token.SameObject(token))
}

// beginGrowing is called before something is added to a file. It reports whether the file was new when it was copied in;
// then noteMade or endGrowing follow.
func (s *copiedIn) beginGrowing(name string, token storage.Token) bool {
	s.madeMu.Lock()
	defer s.madeMu.Unlock()
	m, ok := s.made[name]
	if !ok || m.grown || !m.token.SameObject(token) {
		return false
	}
	m.growing = true
	s.made[name] = m
	return true
}

// endGrowing undoes beginGrowing if nothing was added, or forgets a file that was to be made and was not.
func (s *copiedIn) endGrowing(name string) {
	s.madeMu.Lock()
	defer s.madeMu.Unlock()
	m, ok := s.made[name]
	switch {
	case ok && m.growing && m.token == (storage.Token{}):
		delete(s.made, name)
	case ok:
		m.growing = false
		s.made[name] = m
	}
}

// isMade reports whether a file was new when it was copied in.
func (s *copiedIn) isMade(name string, token storage.Token) bool {
	m, ok := s.findMade(name, token)
	return ok && !m.grown
}

// noteStored is noteMade for what has the name in a storage now.
func (s *copiedIn) noteStored(ctx context.Context, files storage.Storage, name string, m made) {
	if st, err := files.Stat(name); err == nil {
		m.token = st.Token
		s.noteMade(ctx, name, m)
	}
}
