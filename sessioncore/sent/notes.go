package sent

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

const (
	// maxNotes is the size in bytes of the longest notebook that the client reads.
	maxNotes = 16_384
	// maxNotesEntry is the size in bytes of the longest text of an entry that can have one: an escape takes six bytes.
	maxNotesEntry = 6*maxNotes + 64<<10
)

// takeNotes puts the notebook of the branch before everything else, if it has one since the last /clear.
func (b *builder) takeNotes() error {
	for i := len(b.path) - 1; i >= 0; i-- {
		e := b.path[i]
		if b.s.Kind(e) == sessioncore.TypeResetBoundary {
			return nil
		}
		if b.s.Kind(e) != sessioncore.TypeCustom {
			continue
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return err
		}
		if notes, ok := notesOf(text); ok {
			if notes != "" {
				b.messages = append([]message{{entry: e, of: ofNotes, role: "custom"}}, b.messages...)
			}
			return nil
		}
	}
	return nil
}

// notesOf returns the notebook that a custom entry has.
func notesOf(text rawjson.Value) (string, bool) {
	data := text.Member("data")
	if len(text) > maxNotesEntry || !text.Member("customType").Is(contextNotes) || string(data.Member("version")) != "1" {
		return "", false
	}
	others := false
	data.EachMember(func(m rawjson.Member) bool {
		others = others || !m.KeyIs("version") && !m.KeyIs("text")
		return true
	})
	notes, ok := data.Member("text").Text()
	return notes, ok && !others && len(notes) <= maxNotes
}
