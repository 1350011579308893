//go:build linux

package main

import (
	"bufio"
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/view"
)

// TestSearchOnTerminal: for people: a line for each hit at any width, what was found in colour, and nothing that a terminal would obey.
func TestSearchOnTerminal(t *testing.T) {
	at := time.Date(2026, 3, 30, 7, 13, 41, 0, time.Local)
	low := &search.FileHits{Tree: "sessions", File: "p/a.jsonl", ID: "019d3d96-6b66-7996-8ead-42aae5653abc"}
	near := &search.FileHits{Tree: "sessions", File: "p/b.jsonl", ID: "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17"}
	twin := &search.FileHits{Tree: "sessions", File: "p/c.jsonl", ID: "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a18"}
	odd := &search.FileHits{Tree: "sessions", File: "p/d.jsonl", ID: "odd\x1b[2J"}
	hits := []search.Hit{
		{FileHits: low, Entry: "0a", Time: at, Line: "\tthe tides\x1b]0;x\a of \u009b1m\u202e", Copies: 2},
		{FileHits: near, Entry: "afd798c2-0a0b-4c0d-8e0f-101112131415", Time: at, Line: "…ld be of the long and winding road to the tide over there and mo…", Prompt: "why?"},
		{FileHits: twin, Time: at, Line: "Tide"},
		{FileHits: odd, Entry: "x", Time: at, Line: "see /a/very/long/path/which/does/not/fit/into/the/line/of/the/tide.go here"},
	}
	query, err := search.ParseQuery("tide")
	require.NoError(t, err)
	var out bytes.Buffer
	screen := &view.Screen{Writer: bufio.NewWriter(&out), People: true}
	write := func(width int) string {
		out.Reset()
		p := &search.Printer{Out: screen, Width: width, Marks: query.Marks(), Agent: func(*search.FileHits) string { return "omp" }}
		require.NoError(t, p.Hits(hits))
		require.NoError(t, screen.Flush())
		return out.String()
	}
	for _, width := range []int{40, 60, 80, 120, 200} {
		got := write(width)
		for line := range strings.Lines(got) {
			require.LessOrEqual(t, uniseg.StringWidth(strings.TrimSuffix(line, "\n")), max(width, len("7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17#afd798c2")), "%d: %s", width, line)
		}
		for _, id := range []string{"019d3d96-6b66-7996#0a", "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a17#afd798c2", "7b0e2a54-31c9-4d6e-9f2b-8c41d05e6a18", "odd?[2J#x"} {
			require.Contains(t, got, id, "%d", width)
		}
		require.NotRegexp(t, "[\x1b\u009b\u202e]", got)
		require.NotContains(t, got, "…ld")
		require.NotContains(t, got, "mo…")
		if width < 100 {
			require.Equal(t, 3*len(hits), strings.Count(got, "\n"))
		} else {
			require.Equal(t, len(hits), strings.Count(got, "\n"))
		}
	}
	require.Contains(t, write(120), "  …and winding road to the tide over there and…\n")
	plain := write(120)
	screen.Colours = true
	coloured := write(120)
	require.Contains(t, coloured, "the \x1b[1;31mtide\x1b[0ms?]0;x? of")
	require.Equal(t, plain, regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured, ""))

	for _, c := range []struct {
		noColour, term string
		want           bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		require.Equal(t, c.want, wantsColours(func(name string) string {
			return map[string]string{"NO_COLOR": c.noColour, "TERM": c.term}[name]
		}))
	}
}
