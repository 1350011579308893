package sessioncore

import (
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// isRequest reports whether a record that is about to be added is a person's request.
func isRequest(rec *indexRecord, u *jsonl.Unit) bool {
	text := rawjson.Value(u.Text)
	switch rec.kind {
	case TypeCustomMessage: // the entry itself has the members of a message
	case TypeMessage:
		if rec.role != RoleUser && !u.Info.Role.Of(u.Text).Is("custom") {
			return false
		}
		text = text[rec.msgOff : rec.msgOff+rec.msgSize]
	default:
		return false
	}
	m := message.Read(text)
	return message.IsRequest(&m)
}

// IsRequest reports whether an entry is a person's request (docs/format.md, Requests).
func (s *Snapshot) IsRequest(e Entry) bool { return s.records[e].flags&recRequest != 0 }

// Request returns the words of a person's request in an entry's text, as the content of a message,
// or nil if the entry is none.
func (s *Snapshot) Request(e Entry, text rawjson.Value) rawjson.Value {
	if !s.IsRequest(e) {
		return nil
	}
	if s.Kind(e) == TypeMessage {
		text = s.Message(e, text)
	}
	m := message.Read(text)
	words, _ := message.Request(&m)
	return words
}
