package sessioncore

import (
	"context"
	"errors"
	"strings"

	"sessionfs/sessioncore/storage"
)

// probed is what the header of a session says, in one state of its file.
type probed struct {
	token      storage.Token
	isSession  bool
	id, parent string
}

// Probe returns the file's state if the file is a session, without indexing it. Otherwise the error is
// ErrNotSession or one that Acquire returns. The result is cached until the file changes.
func (s *Session) Probe(ctx context.Context) (storage.Stat, error) {
	st, _, err := s.probe(ctx)
	return st, err
}

// ParentText returns the parent that the header names, a path or an id, or "" if it names none. Errors are those of Probe.
func (s *Session) ParentText(ctx context.Context) (string, error) {
	_, p, err := s.probe(ctx)
	return p.parent, err
}

// ID returns the id in the header. Errors are those of Probe.
func (s *Session) ID(ctx context.Context) (string, error) {
	_, p, err := s.probe(ctx)
	return p.id, err
}

func (s *Session) probe(ctx context.Context) (st storage.Stat, p probed, err error) {
	if st, err = s.store.storage.Stat(s.name); err != nil {
		return storage.Stat{}, p, err
	}
	if st.Kind != storage.KindFile {
		return storage.Stat{}, p, storage.ErrNotRegular
	}
	if known := s.probed.Load(); known != nil {
		p = *known
	}
	if p.token != st.Token { // also where it only grew, as an editor may have written it anew in place
		if p, err = storage.Await(ctx, func() (probed, error) { return s.readProbe(ctx) }, func(probed) {}); err != nil {
			return storage.Stat{}, p, err
		}
		p.token = st.Token
		s.probed.Store(&p)
	}
	if !p.isSession {
		return storage.Stat{}, p, ErrNotSession
	}
	return st, p, nil
}

// readProbe reads up to the header.
func (s *Session) readProbe(ctx context.Context) (p probed, err error) {
	header, err := ReadHeaderOf(ctx, s.store.storage, s.name)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or has another size than a compressed file says
		header, err = ReadHeaderOf(ctx, s.store.storage, s.name)
	}
	if errors.Is(err, ErrNotSession) {
		return p, nil
	}
	if d := DialectOf(header); d != nil {
		p.isSession = true
		p.id, _ = header.Member("id").Text()
		p.parent, _ = header.Member(d.ParentSessionKey).Text()
	}
	return p, err
}

// FileEnding is the suffix of the names of session files.
const FileEnding = ".jsonl"

// IsSessionName reports whether a file of that name is a session file by its name (docs/format.md, Files).
func IsSessionName(name string) bool {
	return strings.HasSuffix(name, FileEnding) && !strings.HasPrefix(name, ".")
}

// MaxPath is the maximum length in bytes of a path in parentSession: PATH_MAX without the NUL at its end. A
// parentSession is a path or an id.
const MaxPath = 4095
