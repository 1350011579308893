package rawjson

import (
	"bytes"
	"encoding/json"
)

// Text is a string that is marshaled to JSON as clients write strings: lone surrogates, which an id may contain,
// are escaped.
type Text string

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) { return AppendQuoted(nil, string(t)), nil }

// AppendLine appends v as a line of JSON. v must be a struct of numbers and texts, which cannot fail to be
// marshaled.
func AppendLine(dst []byte, v any) []byte {
	out := bytes.NewBuffer(dst)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return out.Bytes()
}
