package search

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/sessiontest"
)

// TestWhole: the line of a hit is read again whole, also behind the window in which a long text is searched and of a
// title; the prompt is its first line. A hit that is gone stays as it is.
func TestWhole(t *testing.T) {
	line := "The needle of " + strings.Repeat("a long line ", 7000) + "and a pin"
	asked := "Where is it? " + strings.Repeat("Look again. ", 40)
	title := "A needle " + strings.Repeat("in some hay ", 20) + "today"
	text := strings.Replace(sessiontest.Header, `"cwd"`, `"title":"`+title+`","cwd"`, 1) +
		sessiontest.MessageLine(1, `{"role":"user","content":"`+asked+`\nand a second line"}`) +
		sessiontest.MessageLine(2, `{"role":"assistant","content":[{"type":"text","text":"before\n`+line+`\nbehind"}]}`)
	searcher := New(SearchedSessions{Files: sessiontest.Memory(t, []byte(text))})
	for words, want := range map[string]string{
		"needle": line, "pin": line, "hay": title, `"second line"`: "and a second line", "role:user again": strings.TrimSpace(asked),
		"behind": "behind",
	} {
		query, err := ParseQuery(words)
		require.NoError(t, err)
		result, err := searcher.Search(context.Background(), query)
		require.NoError(t, err)
		require.NotEmpty(t, result.Hits, words)
		h := result.Hits[0]
		require.Less(t, len(h.Line), lineBefore+lineAfter+2*len(ellipsis)+1)
		if len(want) > lineBefore+lineAfter {
			require.True(t, h.isCut(), words)
		}
		whole, err := searcher.Whole(context.Background(), query, &h)
		require.NoError(t, err)
		require.Equal(t, want, whole.Line, words)
		if h.Prompt != "" {
			require.Equal(t, strings.TrimSpace(asked), whole.Prompt)
		}
		h.File = "gone.jsonl"
		same, err := searcher.Whole(context.Background(), query, &h)
		require.NoError(t, err)
		require.Equal(t, h, same)
	}
}

// TestTitleHit: a title has no role and no model, so that only words find it.
func TestTitleHit(t *testing.T) {
	text := strings.Replace(sessiontest.Header, `"cwd"`, `"title":"The needle","cwd"`, 1) +
		sessiontest.MessageLine(1, `{"role":"assistant","provider":"Some","model":"m","content":[{"type":"text","text":"A needle"}]}`)
	searcher := New(SearchedSessions{Files: sessiontest.Memory(t, []byte(text))})
	for words, want := range map[string]int{"needle": 2, "needle model:m": 1, "needle role:assistant": 1, "needle model:other": 0} {
		query, err := ParseQuery(words)
		require.NoError(t, err)
		result, err := searcher.Search(context.Background(), query)
		require.NoError(t, err)
		require.Len(t, result.Hits, want, words)
	}
}

// TestWindowEnds: a line that goes on beyond the window in which it is searched is marked as cut there, and no other one is.
func TestWindowEnds(t *testing.T) {
	text := sessiontest.Header + sessiontest.MessageLine(1, `{"role":"user","content":"needle"}`) +
		sessiontest.MessageLine(2, `{"role":"user","content":"needle hay `+strings.Repeat("x", 2*window)+`"}`) +
		sessiontest.MessageLine(3, `{"role":"user","content":"`+strings.Repeat("x", window-10)+` needle and`+strings.Repeat("x", window)+`"}`)
	searcher := New(SearchedSessions{Files: sessiontest.Memory(t, []byte(text))})
	query, err := ParseQuery("needle -hay")
	require.NoError(t, err)
	result, err := searcher.Search(context.Background(), query)
	require.NoError(t, err)
	require.Len(t, result.Hits, 2)
	require.Regexp(t, `^…x+ needle.*…$`, result.Hits[0].Line)
	require.Equal(t, "needle", result.Hits[1].Line, "also behind a long text without the rest of the query")
}

// TestFitCalls: paths are shown whole or not at all, the first one in any case.
func TestFitCalls(t *testing.T) {
	calls := []string{"edit /a/long/path/of/a/file.go", "read b.go", "read c.go"}
	for width, want := range map[int]string{
		5: calls[0] + "…", 30: calls[0] + "…", 40: calls[0] + "…", 42: calls[0] + "; read b.go…", 80: strings.Join(calls, "; "),
	} {
		require.Equal(t, want, fitCalls(calls, width), width)
	}
	require.Equal(t, calls[0], fitCalls(calls[:1], 3))
}
