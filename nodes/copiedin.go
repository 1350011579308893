package nodes

import (
	"context"
	"strings"
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

// wasMade reports whether a name of the storage was copied in.
func (d *SourceDir) wasMade(name string) bool {
	st, err := d.storage.Stat(name)
	if err != nil {
		return false
	}
	_, ok := d.view.copies.findMade(name, st.Token)
	return ok
}

// isOfCopy reports whether the directory lies in one that was copied in, or beside a session that was: artifacts are
// copied there, and nowhere else.
func (d *SourceDir) isOfCopy() bool {
	for dir := d.dir; dir != ""; dir = storage.Dir(dir) {
		if d.wasMade(dir) || d.wasMade(dir+layout.SessionSuffix) {
			return true
		}
	}
	return false
}

// isBeingMade reports whether a lookup of the directory that shows a session is that of the thread that has copied the
// session, and is about to make the directory beside it.
func (d *SourceDir) isBeingMade(ctx context.Context, name string) bool {
	return d.hasCopied(ctx, name) && isMakingDir(ctx)
}

// hasCopied reports whether the thread that makes a request has copied in the session of a name.
func (d *SourceDir) hasCopied(ctx context.Context, name string) bool {
	d.view.copies.madeMu.Lock()
	m, ok := d.view.copies.made[join(d.dir, name+layout.SessionSuffix)]
	d.view.copies.madeMu.Unlock()
	return ok && m.thread != 0 && m.thread == threadOf(ctx)
}

// removeMade removes an artifact or an empty directory that was copied in. It reports whether the name is one.
func (d *SourceDir) removeMade(ctx context.Context, name string, dir bool) (bool, error) {
	at := join(d.dir, name)
	st, err := d.storage.Stat(at)
	if err != nil || !d.takesCopies() {
		return false, nil
	}
	m, ok := d.view.copies.findMade(at, st.Token)
	isDir := st.Kind == storage.KindDir
	if !ok || isDir != dir || !isDir && (m.kind != layout.CopiedArtifact || m.grown || strings.HasSuffix(name, layout.SessionSuffix)) {
		return false, nil
	}
	if !isDir && m.token != st.Token {
		return false, nil
	}
	if err := d.view.Writer.Remove(d.view.Access.forCaller(uninterrupted(ctx)), at, st.Token); err != nil {
		return true, err
	}
	d.view.copies.forgetMade(at)
	return true, nil
}
