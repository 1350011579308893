package view

import (
	"context"
	"io"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

// WriteDiff writes the difference of two branches, which a person calls by these names, as diff -u
// does; nothing if there is none. It returns whether there is one.
func (s *Screen) WriteDiff(ctx context.Context, called [2]string, of [2]Branch) (differs bool, err error) {
	head := "--- " + names.Visible(called[0]) + "\n+++ " + names.Visible(called[1]) + "\n"
	return Diff(ctx, of[0], of[1], func(line []byte) error {
		_, err := s.WriteString(head + s.Coloured(diffColours[line[0]], string(line[:len(line)-1])) + "\n")
		head = ""
		return err
	})
}

// WriteJSONDiff is WriteDiff as JSON: an object that has both names, and tells whether there is a
// difference, then one for each line.
func WriteJSONDiff(ctx context.Context, out io.Writer, called [2]string, of [2]Branch) (differs bool, err error) {
	head := func(differs bool) []byte {
		return rawjson.AppendLine(nil, struct {
			A      string `json:"a"`
			B      string `json:"b"`
			Differ bool   `json:"differ"`
		}{called[0], called[1], differs})
	}
	before := head(true)
	differs, err = Diff(ctx, of[0], of[1], func(text []byte) error {
		sign, line := string(text[:1]), string(text[1:len(text)-1])
		if common, ok := strings.CutPrefix(line, "@ "); ok && sign == "@" {
			sign, line = "@@", strings.TrimSuffix(common, " @@")
		}
		_, err := out.Write(rawjson.AppendLine(before, struct {
			Sign string `json:"sign"`
			Text string `json:"text"`
		}{sign, line}))
		before = nil
		return err
	})
	if err == nil && !differs {
		_, err = out.Write(head(false))
	}
	return differs, err
}
