package sessioncore

import (
	"bytes"
	"encoding/json"

	"sessionfs/sessioncore/internal/rawjson"
)

// jsonText is a text in JSON that we make. It is written as clients write theirs: what is no character, which an id
// may hold, as an escape of its own.
type jsonText string

// MarshalJSON implements json.Marshaler.
func (t jsonText) MarshalJSON() ([]byte, error) { return rawjson.AppendQuoted(nil, string(t)), nil }

// textOrNull returns a text that is null if it is not there.
func textOrNull(text string, there bool) *jsonText {
	if !there {
		return nil
	}
	return (*jsonText)(&text)
}

// appendJSONLine appends a line of JSON. v is a struct of numbers and texts: nothing in it can fail to be written.
func appendJSONLine(dst []byte, v any) []byte {
	out := bytes.NewBuffer(dst)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return out.Bytes()
}
