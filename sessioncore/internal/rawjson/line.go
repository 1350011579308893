package rawjson

import (
	"bytes"
	"encoding/json"
)

// Text is a text in JSON that we make. It is written as clients write theirs: what is no character, which an id
// may hold, as an escape of its own.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) { return AppendQuoted(nil, string(t)), nil }

// TextOrNull returns a text that is null if it is not there.
func TextOrNull(text string, there bool) *Text {
	if !there {
		return nil
	}
	return (*Text)(&text)
}

// AppendLine appends a line of JSON. v is a struct of numbers and texts: nothing in it can fail to be written.
func AppendLine(dst []byte, v any) []byte {
	out := bytes.NewBuffer(dst)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return out.Bytes()
}
