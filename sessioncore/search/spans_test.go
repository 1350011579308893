package search

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpans(t *testing.T) {
	for _, c := range []struct{ query, text, want string }{
		{"tide", "Tides and TIDES", "[Tide]s and [TIDE]S"},
		{"Tide", "Tides and TIDES", "[Tide]s and TIDES"},
		{"ab bc", "xabcx ab", "x[abc]x [ab]"},
		{"aa", "aaaaa", "[aaaa]a"},
		{`"a b" -c role:user`, "c a b", "c [a b]"},
		{"straße", "eine STRAßE", "eine [STRAßE]"},
		{"ⱥb", "xȺBx", "x[ȺB]x"}, // 3 bytes and 2
		{"role:user", "user", "user"},
		{"none", "", ""},
	} {
		q, err := ParseQuery(c.query)
		require.NoError(t, err)
		var got strings.Builder
		end := 0
		for _, s := range q.Spans(c.text) {
			got.WriteString(c.text[end:s.From] + "[" + c.text[s.From:s.To] + "]")
			end = s.To
		}
		require.Equal(t, c.want, got.String()+c.text[end:], c.query)
	}
}
