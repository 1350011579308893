package sessioncore

import (
	"errors"
	"strings"
	"time"

	"sessionfs/sessioncore/storage"
)

// probed is what Probe found of one state of a file.
type probed struct {
	token     storage.Token
	isSession bool
}

// Probe tells whether the file is a session, without indexing it: nil, or ErrNotSession, or what Acquire
// returns. What it finds is remembered until the file changes.
func (s *Session) Probe() (storage.Stat, error) {
	st, err := s.store.storage.Stat(s.name)
	if err != nil {
		return storage.Stat{}, err
	}
	if st.Kind != storage.KindFile {
		return storage.Stat{}, storage.ErrNotRegular
	}
	known := s.probed.Load()
	if known == nil || known.token != st.Token {
		// Growth leaves the first value as it is; where there was none, growth may bring it.
		if known != nil && known.isSession && known.token.SameObject(st.Token) && st.Size > known.token.Size {
			known = &probed{st.Token, true}
		} else {
			isSession, err := s.findHeader()
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

// findHeader reads the file up to its first value.
func (s *Session) findHeader() (bool, error) {
	header, err := ReadHeaderOf(s.store.storage, s.name)
	if errors.Is(err, ErrNotSession) {
		return false, nil
	}
	return header != nil, err
}

// FileEnding is what the names of session files end in.
const FileEnding = ".jsonl"

// IsSessionName tells session files from what else lies beside them (docs/format.md, Files).
func IsSessionName(name string) bool {
	return strings.HasSuffix(name, FileEnding) && !strings.HasPrefix(name, ".")
}

// MaxPath is the longest path in bytes: PATH_MAX, less the NUL at its end. parentSession is a path or an id.
const MaxPath = 4095

// parentRef is what a session's header says of its parent, in one state of the file.
type parentRef struct {
	token  storage.Token
	readAt int64
	text   string
}

// ParentText returns what the header says of the parent, "" for nothing. It is read once for each state
// of the file.
func (s *Session) ParentText() (string, error) {
	st, err := s.Probe()
	if err != nil {
		return "", err
	}
	if known := s.parent.Load(); known != nil && known.token == st.Token && !st.Token.Racy(known.readAt) {
		return known.text, nil
	}
	now := time.Now().UnixNano()
	header, err := ReadHeaderOf(s.store.storage, s.name)
	if err != nil {
		return "", err
	}
	text := ""
	if d := DialectOf(header); d != nil {
		text, _ = header.Member(d.ParentSessionKey).Text()
	}
	s.parent.Store(&parentRef{st.Token, now, text})
	return text, nil
}
