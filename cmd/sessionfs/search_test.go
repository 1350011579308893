//go:build linux

package main

import (
	"bufio"
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/view"
)

// For people: what was found in colour, and nothing that a terminal would obey.
func TestSearchOnTerminal(t *testing.T) {
	at := time.Date(2026, 3, 30, 7, 13, 41, 0, time.Local)
	low := &search.Found{Tree: "sessions", File: "p/a.jsonl", Session: "Low \x1b[2J"}
	high := &search.Found{Tree: "sessions", File: "p/b.jsonl", Session: "High"}
	hits := []search.Hit{
		{Found: low, Entry: "0a", What: "user-tides", Time: at,
			Line: "\tthe tides\x1b]0;x\a of \u009b1m\u202e", Copies: 2},
		{Found: high, Entry: "0b", What: "assistant", Time: at, Line: "tide", Prompt: "why?"},
		{Found: low, What: search.TitleLabel, Time: at, Line: "Tide"},
	}
	query, err := search.ParseQuery("tide")
	require.NoError(t, err)
	var out bytes.Buffer
	p := &view.Screen{Writer: bufio.NewWriter(&out), People: true}
	write := func(hits []search.Hit) {
		out.Reset()
		(&search.Printer{Out: p, Marks: query.Marks()}).Hits(hits)
		require.NoError(t, p.Flush())
	}
	write(hits)
	const plain = "Low ?[2J\n" +
		"sessions/p/a/entries/0a.json\n  2026-03-30 07:13:41  user-tides  (copied by 2)\n     the tides?]0;x? of ?1m?\n" +
		"sessions/p/a/title\n  2026-03-30 07:13:41  title\n    Tide\n"
	const second = "\nHigh\nsessions/p/b/entries/0b.json\n  2026-03-30 07:13:41  assistant\n    tide\n    asked: why?\n"
	require.Equal(t, plain+second, out.String())
	p.Colours = true
	write(hits)
	require.Contains(t, out.String(), "the \x1b[1;31mtide\x1b[0ms?]0;x? of")
	require.Equal(t, plain+second, regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(out.String(), ""))

	for _, c := range []struct {
		noColour, term string
		want           bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		require.Equal(t, c.want, wantsColours(func(name string) string {
			return map[string]string{"NO_COLOR": c.noColour, "TERM": c.term}[name]
		}))
	}
}
