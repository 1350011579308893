package postgres

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ptr(s string) *string { return &s }

func TestSlotLine(t *testing.T) {
	const at = "2026-02-16T10:20:30.000Z"
	for _, c := range []struct{ text, source, want string }{
		{"A title", "user", `{"type":"title","v":1,"title":"A title","source":"user","updatedAt":"` + at + `","pad":"`},
		{"", "", `{"type":"title","v":1,"title":"","updatedAt":"` + at + `","pad":"`},
		{"a\"b\\c\n<é日本\u2028", "auto",
			`{"type":"title","v":1,"title":"a\"b\\c\n<é日本` + "\u2028" + `","source":"auto","updatedAt":"` + at + `","pad":"`},
		{"x", "somebody", `{"type":"title","v":1,"title":"x","updatedAt":"` + at + `","pad":"`},
	} {
		line := title{ptr(c.text), ptr(c.source), ptr(at)}.line()
		require.Len(t, line, slotSize)
		require.Equal(t, c.want, strings.TrimRight(strings.TrimSuffix(string(line), "\"}\n"), " "))
		back, ok := parseSlot(append(line, "more"...))
		require.True(t, ok)
		require.Equal(t, c.text, *back.text)
		require.Equal(t, line, back.line())
	}
	long := title{ptr(strings.Repeat("日", 200)), ptr("user"), ptr(at)}.line()
	require.Len(t, long, slotSize)
	back, ok := parseSlot(long)
	require.True(t, ok)
	require.Equal(t, strings.Repeat("日", len(*back.text)/3), *back.text, "cut at a code point")
	require.Contains(t, string(long), `"pad":"`, "as full as it gets")
	require.LessOrEqual(t, strings.Count(string(long), " "), 2)

	require.Nil(t, title{text: ptr("x")}.line(), "no time: no title to lay over")
	require.Nil(t, title{text: ptr("x"), updated: ptr(strings.Repeat("9", 250))}.line())
	for _, body := range []string{
		"", "short\n", strings.Repeat("x", 300), string(long[:slotSize-1]) + " {}\n", strings.Replace(string(long), `"v":1`, `"v":2`, 1),
		strings.Replace(string(long), `"user"`, `"you."`, 1), strings.Replace(string(long), `"updatedAt"`, `"updatedBy"`, 1),
		strings.Repeat("\n", slotSize),
	} {
		_, ok := parseSlot([]byte(body))
		require.False(t, ok, body)
	}
}
