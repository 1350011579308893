package search

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/message"
)

// lastPrompt is the last read request of a person.
type lastPrompt struct {
	entry sessioncore.Entry
	line  string // the first one
	read  bool
}

// before returns the first line of the person's request that an entry follows or is, or "".
func (p *lastPrompt) before(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	for n := 0; e != sessioncore.NoEntry && n < s.Len(); n++ { // parents may be a cycle
		if !s.IsRequest(e) {
			e = s.Parent(e)
			continue
		}
		if !p.read || p.entry != e {
			text, err := s.EntryText(e)
			if err != nil {
				return ""
			}
			words, _ := message.FirstText(s.Request(e, text)).Bytes()
			*p = lastPrompt{e, lineAt(bytes.TrimSpace(words), 0), true}
		}
		return p.line
	}
	return ""
}
