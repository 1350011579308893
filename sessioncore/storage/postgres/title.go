package postgres

import (
	"bytes"
	"encoding/json"

	"sessionfs/sessioncore/names"
)

// title is the title columns of a row. The client lays them over the title slot of the content when
// it reads it.
type title struct {
	text, source *string
	updated      *string // nil if there is no title to lay over
}

const slotSize = names.SlotSize

// titleSlot is a title slot as it is read.
type titleSlot struct {
	Type    string  `json:"type"`
	Version float64 `json:"v"`
	Title   *string `json:"title"`
	Source  *string `json:"source"`
	Updated *string `json:"updatedAt"`
	Pad     *string `json:"pad"`
}

// parseSlot returns the title in the slot that a content begins with; ok is false if it begins with
// none.
func parseSlot(content []byte) (t title, ok bool) {
	if len(content) < slotSize {
		return title{}, false
	}
	line := content[:slotSize]
	isLine := bytes.IndexByte(line, '\n') == slotSize-1
	if !isLine {
		return title{}, false
	}
	var s titleSlot
	err := json.Unmarshal(line, &s)
	if err != nil || !s.isValid() {
		return title{}, false
	}
	return title{text: s.Title, source: s.Source, updated: s.Updated}, true
}

// isValid reports whether a slot has all members, with values that the client writes.
func (s *titleSlot) isValid() bool {
	if s.Type != "title" || s.Version != 1 {
		return false
	}
	if s.Title == nil || s.Updated == nil || s.Pad == nil {
		return false
	}
	return s.Source == nil || *s.Source == "user" || *s.Source == "auto"
}

// line returns the slot that the client makes of the columns: slotSize bytes, the title cut at a
// code point. It returns nil without a title, or if the slot does not fit.
func (t title) line() []byte {
	if t.updated == nil || *t.updated == "" {
		return nil
	}
	text := ""
	source := ""
	if t.text != nil {
		text = *t.text
	}
	if t.source != nil && (*t.source == "user" || *t.source == "auto") {
		source = *t.source
	}
	return names.TitleSlot(text, source, *t.updated)
}
