package search

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// lastPrompt is the last read prompt of the user.
type lastPrompt struct {
	entry sessioncore.Entry
	line  string // the first one
	read  bool
}

// before returns the first line of the user's prompt that an entry follows or is, or "".
func (p *lastPrompt) before(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	for n := 0; e != sessioncore.NoEntry && n < s.Len(); n++ { // parents may be a cycle
		if s.Role(e) != sessioncore.RoleUser {
			e = s.Parent(e)
			continue
		}
		if !p.read || p.entry != e {
			text, err := s.EntryText(e)
			if err != nil {
				return ""
			}
			*p = lastPrompt{e, lineAt(bytes.TrimSpace(textOf(s.Message(e, text))), 0), true}
		}
		return p.line
	}
	return ""
}

// textOf returns the first text in the content of a message.
func textOf(m rawjson.Value) []byte {
	content := m.Member("content")
	for block := range content.EachElement {
		if text, ok := block.Member("text").Bytes(); ok {
			return text
		}
	}
	text, _ := content.Bytes()
	return text
}
