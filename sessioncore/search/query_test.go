package search

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestParseQuery(t *testing.T) {
	for text, want := range map[string]slowQuery{
		"one":                         {words: []string{"one"}},
		" one\ttwo\n":                 {words: []string{"one", "two"}},
		`"a phrase" -not -"nor this"`: {words: []string{"a phrase"}, without: []string{"not", "nor this"}},
		"role:tool tool:bash x":       {words: []string{"x"}, role: "tool", tool: "bash"},
		`cwd:"/a b/../c/" x`:          {words: []string{"x"}, cwd: "/c"},
		"http://x roles:a say\"hi":    {words: []string{"http://x", "roles:a", `say"hi`}},
		"-":                           {words: []string{"-"}},
		"- a":                         {words: []string{"-", "a"}},
		`"role:user"`:                 {words: []string{"role:user"}},
		"--flag x":                    {words: []string{"x"}, without: []string{"-flag"}},
	} {
		q, err := ParseQuery(text)
		require.NoError(t, err, text)
		got := slowQuery{role: q.role, cwd: q.cwd}
		for _, w := range q.words {
			got.words = append(got.words, w.text)
		}
		for _, w := range q.without {
			got.without = append(got.without, w.text)
		}
		if q.tool != nil {
			got.tool = q.tool.text
		}
		require.Equal(t, want, got, text)
	}
	for text, why := range map[string]string{
		"": "empty", "  ": "empty", "-x": "only says what must not", `"a`: "does not end", `"a"b`: "needs a blank", `""`: "phrase is empty", `-""`: "phrase is empty",
		"role:": "needs a value", "role:x": "user, assistant or tool", "role:user role:tool": "twice", "-tool:x": "cannot be excluded", "cwd:a": "absolute",
		"after:yesterday": "needs a date", "before:2026-13-01": "needs a date", "in:x": "in: is archive", "\xff": "UTF-8", "\xed\xa0\x80": "UTF-8",
		"after:2026-02-01 before:2026-02-01": "no time", strings.Repeat("a", maxQuery+1): "more than",
	} {
		_, err := ParseQuery(text)
		require.ErrorIs(t, err, ErrQuery, text)
		require.ErrorContains(t, err, why, text)
	}
	q, err := ParseQuery("in:archive x")
	require.NoError(t, err)
	require.True(t, q.Archive())
}

// FuzzParseQuery: a query is refused with a reason, or has words that it itself has; nothing panics.
func FuzzParseQuery(f *testing.F) {
	corpus, err := os.ReadFile(filepath.Join("testdata", "queries"))
	require.NoError(f, err)
	for line := range strings.Lines(string(corpus)) {
		f.Add(strings.TrimSuffix(line, "\n"))
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuery(text)
		if err != nil {
			require.ErrorIs(t, err, ErrQuery)
			require.Greater(t, len(err.Error()), len(ErrQuery.Error())+2)
			return
		}
		require.True(t, utf8.ValidString(text))
		for _, w := range append(q.words, q.without...) {
			require.NotEmpty(t, w.text)
			require.Contains(t, string(appendFolded(nil, []byte(text))), string(appendFolded(nil, []byte(w.text))))
			var scratch []byte
			require.GreaterOrEqual(t, w.index([]byte(text), &scratch), 0, "%q", w.text)
		}
		again, err := ParseQuery(text)
		require.NoError(t, err)
		require.Equal(t, q, again)
	})
}

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
