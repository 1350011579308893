package history

import (
	"encoding/json"
	"time"
)

// Array is the format of JSON files that hold an array of prompts, for Converted.
type Array struct {
	// Text, Time and Session are members of an object: the prompt, its time and session (optional).
	Text, Time, Session string
	// Cwd returns the working directory of the prompts in a file, "" for none.
	Cwd func(name string) string
}

// Append appends the prompts in the text of a file, for Converted. It ignores a file that is no
// such array, as it may be half written.
func (h Array) Append(dst []byte, name string, text []byte) []byte {
	var prompts []map[string]any
	if json.Unmarshal(text, &prompts) != nil {
		return dst
	}
	cwd := h.Cwd(name)
	for _, p := range prompts {
		text, isText := p[h.Text].(string)
		written, _ := p[h.Time].(string)
		at, err := time.Parse(time.RFC3339, written)
		if !isText || err != nil {
			continue
		}
		v := prompt{Display: &text, Timestamp: float64(at.UnixMilli())}
		if session, ok := p[h.Session].(string); ok {
			v.SessionID = &session
		}
		if cwd != "" {
			v.Project = &cwd
		}
		line, _ := json.Marshal(v)
		dst = append(append(dst, line...), '\n')
	}
	return dst
}
