package report

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

const (
	// maxSaid is the length of the beginning of a text, in characters. Whole paragraphs of one have more where
	// it has.
	maxSaid = 80
	// maxSaidEntry is the size of the longest entry, in bytes, that is read for it.
	maxSaidEntry = 4 << 20
)

// shortener returns the part of a text that tells a reader most, on one line.
type shortener func(text string) string

// beginning is the excerpt for tables: at most maxSaid characters and an ellipsis.
func beginning(text string) string { return names.FirstWords(text, maxSaid) }

// paragraphs is the excerpt for logs: the first paragraphs, whole.
func paragraphs(text string) string { return names.Paragraphs(text, maxSaid) }

// shortText reads an entry, nil if it is too long.
func shortText(
	ctx context.Context, s *sessioncore.Snapshot, read func(sessioncore.Entry) (rawjson.Value, error), e sessioncore.Entry,
) (rawjson.Value, error) {
	r, _ := s.EntryRange(e)
	if r.Size > maxSaidEntry {
		return nil, ctx.Err()
	}
	text, err := read(e)
	if err == nil {
		err = ctx.Err()
	}
	return text, err
}

// firstSaid returns an excerpt of a content: of its first text, else of its first call of a tool.
func firstSaid(content rawjson.Value, of shortener) (said string, isCall bool) {
	if content.IsString() {
		return of.value(content), false
	}
	call := ""
	for v := range content.EachElement {
		switch b := message.Read(v); b.Kind() {
		case message.TextKind:
			said := of.value(b[message.Text])
			if said != "" {
				return said, false
			}
		case message.CallKind:
			if call == "" {
				call = callSaid(&b, of)
			}
		}
	}
	return call, call != ""
}

// fewBytes is how much of a text is decoded to find its excerpt, if it has enough there.
const fewBytes = 4 << 10

// value returns the excerpt of a string.
func (of shortener) value(v rawjson.Value) string {
	if v.IsString() && len(v) > fewBytes {
		head := string(rawjson.AppendDecoded(nil, v[1:rawjson.CutPoint(v, fewBytes)]))
		words := of(head)
		if words == of(head+" more") { // the rest makes no difference
			return words
		}
	}
	text, _ := v.Text()
	return of(text)
}

// callSaid returns an excerpt of the name of a tool and its first argument, or the last word of a list,
// which is a command.
func callSaid(call *message.Members, of shortener) string {
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
	return of(name + " " + about)
}
