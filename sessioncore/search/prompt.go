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

// Before returns the first line of the person's request that an entry follows or is, or "" if there is none,
// or it cannot be read.
func (p *Prompts) Before(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	if p.AreOff {
		return ""
	}
	request := requestOf(s, e)
	if request == sessioncore.NoEntry {
		return ""
	}
	if p.read && p.entry == request {
		return p.line
	}
	text, err := s.EntryText(request)
	if err != nil {
		return ""
	}
	words, _ := message.FirstText(s.Request(request, text)).Bytes()
	words = bytes.TrimSpace(words)
	p.entry = request
	p.read = true
	p.line = lineAt(words, 0)
	if p.AreWhole {
		p.line = wholeLineAt(words, 0)
	}
	return p.line
}

// requestOf returns the person's request that an entry follows or is, or NoEntry.
func requestOf(s *sessioncore.Snapshot, e sessioncore.Entry) sessioncore.Entry {
	for range s.Len() { // parents may be a cycle
		if e == sessioncore.NoEntry || s.IsRequest(e) {
			return e
		}
		e = s.Parent(e)
	}
	return sessioncore.NoEntry
}
