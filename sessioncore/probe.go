package sessioncore

import (
	"context"
	"errors"
	"strings"
	"time"

	"sessionfs/sessioncore/storage"
)

// probed is the result of Probe for one state of a file.
type probed struct {
	token     storage.Token
	isSession bool
}

// Probe returns the file's state if the file is a session, without indexing it. Otherwise the error is
// ErrNotSession or one that Acquire returns. The result is cached until the file changes.
func (s *Session) Probe(ctx context.Context) (storage.Stat, error) {
	st, err := s.store.storage.Stat(s.name)
	if err != nil {
		return storage.Stat{}, err
	}
	if st.Kind != storage.KindFile {
		return storage.Stat{}, storage.ErrNotRegular
	}
	known := s.probed.Load()
	if known == nil || known.token != st.Token {
		// Growth does not change the first value. If there was none, growth may add it.
		if known != nil && known.isSession && known.token.SameObject(st.Token) && st.Size > known.token.Size {
			known = &probed{st.Token, true}
		} else {
			isSession, err := storage.Await(ctx, func() (bool, error) { return s.findHeader(ctx) }, func(bool) {})
			if err != nil {
				return storage.Stat{}, err
			}
			known = &probed{st.Token, isSession}
		}
		s.probed.Store(known)
	}
	if !known.isSession {
		return storage.Stat{}, ErrNotSession
	}
	return st, nil
}

// findHeader reports whether the file has a header. It reads up to the first value.
func (s *Session) findHeader(ctx context.Context) (bool, error) {
	header, err := ReadHeaderOf(ctx, s.store.storage, s.name)
	if errors.Is(err, storage.ErrStale) { // it was replaced, or has another size than a compressed file says
		header, err = ReadHeaderOf(ctx, s.store.storage, s.name)
	}
	if errors.Is(err, ErrNotSession) {
		return false, nil
	}
	return header != nil, err
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

// headerNames is what a session's header says of it and its parent, in one state of the file.
type headerNames struct {
	token      storage.Token
	readAt     int64
	id, parent string
}

// ParentText returns the parent that the header names, a path or an id, or "" if it names none.
func (s *Session) ParentText(ctx context.Context) (string, error) {
	h, err := s.readHeaderNames(ctx)
	return h.parent, err
}

// ID returns the id in the header, "" if there is none.
func (s *Session) ID(ctx context.Context) (string, error) {
	h, err := s.readHeaderNames(ctx)
	return h.id, err
}

// readHeaderNames reads the header once per state of the file.
func (s *Session) readHeaderNames(ctx context.Context) (headerNames, error) {
	st, err := s.Probe(ctx)
	if err != nil {
		return headerNames{}, err
	}
	if known := s.named.Load(); known != nil && known.token == st.Token && !st.Token.Racy(known.readAt) {
		return *known, nil
	}
	h := headerNames{token: st.Token, readAt: time.Now().UnixNano()}
	header, err := ReadHeaderOf(ctx, s.store.storage, s.name)
	if err != nil {
		return headerNames{}, err
	}
	if d := DialectOf(header); d != nil {
		h.id, _ = header.Member("id").Text()
		h.parent, _ = header.Member(d.ParentSessionKey).Text()
	}
	s.named.Store(&h)
	return h, nil
}
