package view

import (
	"context"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// comparedBranches is the first object of a difference as JSON.
type comparedBranches struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Differ bool   `json:"differ"`
}

// diffLine is a line of a difference as JSON.
type diffLine struct {
	Sign string `json:"sign"`
	Text string `json:"text"`
}

// WriteDiff writes the difference of two branches, which a person calls by these titles, as diff -u
// does; nothing if there is none. As JSON it writes an object that has both titles, and tells whether
// there is a difference, then one for each line. It returns whether there is one.
func (s *Screen) WriteDiff(
	ctx context.Context, titles [2]string, branches [2]ShownBranch, asJSON bool,
) (differs bool, err error) {
	w := diffWriter{screen: s, titles: titles, asJSON: asJSON}
	differs, err = diff(ctx, branches, w.line)
	if err == nil && !differs && asJSON {
		_, err = s.WriteString(w.head(false))
	}
	return differs, err
}

// diffWriter writes a difference to a screen.
type diffWriter struct {
	screen  *Screen
	titles  [2]string
	asJSON  bool
	hasHead bool // the head is written
}

// head returns the lines before a difference.
func (w *diffWriter) head(differs bool) string {
	if !w.asJSON {
		return "--- " + names.Visible(w.titles[0]) + "\n+++ " + names.Visible(w.titles[1]) + "\n"
	}
	object := comparedBranches{
		A:      w.titles[0],
		B:      w.titles[1],
		Differ: differs,
	}
	return string(rawjson.AppendLine(nil, object))
}

// line writes a line of the difference, the first one below the head.
func (w *diffWriter) line(sign, text string) error {
	line := ""
	switch {
	case w.asJSON:
		line = string(rawjson.AppendLine(nil, diffLine{Sign: sign, Text: text}))
	case sign == "@@":
		line = w.screen.Coloured(diffColours['@'], "@@ "+text+" @@") + "\n"
	default:
		line = w.screen.Coloured(diffColours[sign[0]], sign+text) + "\n"
	}
	if !w.hasHead {
		line = w.head(true) + line
		w.hasHead = true
	}
	_, err := w.screen.WriteString(line)
	return err
}
