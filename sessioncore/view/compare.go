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

// WriteDiff writes the difference of two branches, which a person calls by these names, as diff -u
// does; nothing if there is none. As JSON it writes an object that has both names, and tells whether
// there is a difference, then one for each line. It returns whether there is one.
func (s *Screen) WriteDiff(ctx context.Context, called [2]string, of [2]ShownBranch, asJSON bool) (differs bool, err error) {
	head := func(differs bool) string {
		if !asJSON {
			return "--- " + names.Visible(called[0]) + "\n+++ " + names.Visible(called[1]) + "\n"
		}
		return string(rawjson.AppendLine(nil, comparedBranches{
			A:      called[0],
			B:      called[1],
			Differ: differs,
		}))
	}
	before := head(true)
	differs, err = diff(ctx, of, func(sign, text string) error {
		line := ""
		switch {
		case asJSON:
			line = string(rawjson.AppendLine(nil, diffLine{Sign: sign, Text: text}))
		case sign == "@@":
			line = s.Coloured(diffColours['@'], "@@ "+text+" @@") + "\n"
		default:
			line = s.Coloured(diffColours[sign[0]], sign+text) + "\n"
		}
		_, err := s.WriteString(before + line)
		before = ""
		return err
	})
	if err == nil && !differs && asJSON {
		_, err = s.WriteString(head(false))
	}
	return differs, err
}
