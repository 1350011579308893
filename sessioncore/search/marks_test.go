package search

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMarks(t *testing.T) {
	for query, want := range map[string]string{
		"tide":            "the <Tide>s, a <tide>, tid.e",
		"tide tides":      "the <Tides>, a <tide>, tid.e",
		"Tide":            "the <Tide>s, a tide, tid.e",
		`"a tide" tid.e`:  "the Tides, <a tide>, <tid.e>",
		"-tide role:user": "the Tides, a tide, tid.e",
	} {
		q, err := ParseQuery(query)
		require.NoError(t, err)
		text := "the Tides, a tide, tid.e"
		if marks := q.Marks(); marks != nil {
			text = marks.ReplaceAllString(text, "<$0>")
		}
		require.Equal(t, want, text, query)
	}
}
