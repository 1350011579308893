package search

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/message"
)

// Prompts finds the prompts before entries of a session, and keeps the last one.
type Prompts struct {
	AreWhole bool // their first lines are not shortened
	AreOff   bool // there are none, as for a caller that only counts

	entry sessioncore.Entry // of the last one
	line  string
	read  bool
}

// Before returns the first line of the person's request that an entry follows or is, or "".
func (p *Prompts) Before(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	for n := 0; !p.AreOff && e != sessioncore.NoEntry && n < s.Len(); n++ { // parents may be a cycle
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
			words = bytes.TrimSpace(words)
			p.entry = e
			p.read = true
			if p.AreWhole {
				p.line = wholeLineAt(words, 0)
			} else {
				p.line = lineAt(words, 0)
			}
		}
		return p.line
	}
	return ""
}
