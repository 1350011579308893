package report

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

const (
	// maxSaid is the length of the beginning of a text, in characters.
	maxSaid = 80
	// maxSaidEntry is the size of the longest entry, in bytes, that is read for it.
	maxSaidEntry = 4 << 20
)

// shortText reads an entry, nil if it is too long.
func shortText(
	ctx context.Context, s *sessioncore.Snapshot, read func(sessioncore.Entry) (rawjson.Value, error), e sessioncore.Entry,
) (rawjson.Value, error) {
	if r, _ := s.EntryRange(e); r.Size > maxSaidEntry {
		return nil, ctx.Err()
	}
	text, err := read(e)
	if err == nil {
		err = ctx.Err()
	}
	return text, err
}

// firstSaid returns the beginning of a content: of its first text, else its first call of a tool.
func firstSaid(content rawjson.Value) (said string, isCall bool) {
	if content.IsString() {
		return wordsOf(content), false
	}
	call := ""
	for v := range content.EachElement {
		switch b := message.Read(v); b.Kind() {
		case message.TextKind:
			if said := wordsOf(b[message.Text]); said != "" {
				return said, false
			}
		case message.CallKind:
			if call == "" {
				call = callSaid(&b)
			}
		}
	}
	return call, call != ""
}

// fewBytes is how much of a text is decoded to find its first words, if it has enough there.
const fewBytes = 4 << 10

// wordsOf returns the first words of a string.
func wordsOf(v rawjson.Value) string {
	if v.IsString() && len(v) > fewBytes {
		head := string(rawjson.AppendDecoded(nil, v[1:rawjson.CutPoint(v, fewBytes)]))
		words := names.FirstWords(head, maxSaid)
		if words == names.FirstWords(head+" more", maxSaid) { // the rest makes no difference
			return words
		}
	}
	text, _ := v.Text()
	return names.FirstWords(text, maxSaid)
}

// callSaid returns the name of a tool and its first argument, or the last word of a list, which is
// a command.
func callSaid(call *message.Members) string {
	name, _ := call[message.Name].Text()
	arguments := call[message.Arguments]
	about, _ := arguments.Text()
	for m := range arguments.EachMember {
		about, _ = m.Value.Text()
		for e := range m.Value.EachElement {
			about, _ = e.Text()
		}
		if about != "" && !m.KeyIs("_i") { // which is the intent
			break
		}
	}
	return names.FirstWords(name+" "+about, maxSaid)
}
