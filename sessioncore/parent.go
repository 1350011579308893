package sessioncore

import (
	"time"

	"sessionfs/sessioncore/storage"
)

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
