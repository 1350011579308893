package transcript

import (
	"bytes"
	"context"
	"iter"

	"sessionfs/sessioncore"
)

// Part is what a transcript shows of one entry, in Markdown. It is valid until the next one.
type Part struct {
	Name    string // that of the entry's file in entries/, without the suffix
	Turn    string // who speaks, such as "User", if a turn begins here
	Opening []byte // the heading of the turn, or a line that names the entry; empty for notes
	Body    []byte
	Result  bool // of a tool; the first line of Body says of which
}

// Parts returns what Render renders, one entry after the other: what precedes the first turn, and the entries that are shown.
// A part does not depend on those before it to be Markdown.
func Parts(
	ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, links Links,
) (head []byte, parts iter.Seq2[Part, error], err error) {
	t, doc, err := render(ctx, s, leaf, links)
	if err != nil {
		return nil, nil, err
	}
	doc.Close()
	return t.head, func(yield func(Part, error) bool) {
		for _, shown := range t.entries {
			part, err := t.part(shown)
			if err == nil {
				err = ctx.Err()
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}, nil
}

func (t *transcript) part(shown shownEntry) (p Part, err error) {
	text, err := t.reader.Read(shown.entry)
	if err != nil {
		return p, err
	}
	w := t.renderer
	size, err := w.render(shown.entry, shown.asked, text)
	p = Part{Name: w.s.Name(shown.entry), Opening: w.opening(shown.begins), Body: w.body, Result: size.flags&partNamed != 0}
	if shown.begins {
		p.Turn = turnOf(w.heading)
	}
	return p, err
}

// turnOf returns who speaks, as a heading says it.
func turnOf(heading []byte) string {
	who, _, _ := bytes.Cut(bytes.TrimPrefix(heading, []byte("\n## ")), []byte(" · "))
	return string(who)
}
