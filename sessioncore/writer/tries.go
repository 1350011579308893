package writer

import (
	"encoding/json"
	"reflect"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// tries is what the tries of one append have in common. A program without the lock that replaces the file just after we
// wrote to it may have read it before or after: so a line that an earlier try wrote is lost or is in the new file, and
// its id tells which. A nil *tries is that of a write that is not tried again.
type tries struct {
	now   time.Time // the time of the first try
	ids   []string  // of the lines in their order: those that they came with, and those that were made for them
	wrote bool      // lines with these ids may be in the file
}

// begin makes the batch one of these tries.
func (t *tries) begin(b *batch) {
	if t.now.IsZero() {
		t.now = b.now
	}
	b.now = t.now
}

// idOf returns the id of line i, "" if it has none yet.
func (t *tries) idOf(i int) string {
	if t == nil || i >= len(t.ids) {
		return ""
	}
	return t.ids[i]
}

// writes notes that lines with these ids are about to be written.
func (t *tries) writes(ids []string) {
	t.wrote = true
	if len(ids) > len(t.ids) {
		t.ids = ids
	}
}

// survived reports whether line i is in the session, as an earlier try wrote it.
func (t *tries) survived(s *sessioncore.Snapshot, i int, d *draft) bool {
	id := t.idOf(i)
	if id == "" || !t.wrote {
		return false
	}
	e, err := s.Verify(id)
	if err != nil {
		return false
	}
	if d.id == nil {
		return true // nobody else knew this id
	}
	text, err := s.EntryText(e)
	return err == nil && hasMembers(text, d.text)
}

// hasMembers reports whether an entry has all members of a line. The program that carried the line over may have
// written the same values in another way.
func hasMembers(entry, line rawjson.Value) bool {
	var has, want map[string]any
	if json.Unmarshal(entry, &has) != nil || json.Unmarshal(line, &want) != nil {
		return false
	}
	for key, value := range want {
		if other, ok := has[key]; !ok || !reflect.DeepEqual(other, value) {
			return false
		}
	}
	return true
}
