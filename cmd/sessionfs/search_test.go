//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/search"
)

// The command finds what a mount does, in the order of the sessions, and its statuses are those of grep.
func TestSearch(t *testing.T) {
	s := commandStore(t)
	for _, query := range []string{"tides", "go role:user", `"high water" -low`, "tool:bash"} {
		r := s.here("search", query)
		require.Equal(t, exitFound, r.code, query)
		require.Empty(t, r.stderr)
		require.ElementsMatch(t, strings.Split(s.here("cat", "search/"+query+"/results.tsv").stdout, "\n"), strings.Split(r.stdout, "\n"), query)
		var sessions []string
		for line := range strings.Lines(r.stdout) {
			sessions = append(sessions, strings.Split(line, "\t")[1])
		}
		require.Len(t, slices.Compact(slices.Clone(sessions)), len(slices.Compact(slices.Sorted(slices.Values(sessions)))), query)
	}
	require.Equal(t, s.here("search", "go role:user"), s.here("search", "go", "role:user"))
	require.Equal(t, s.here("search", "tides -low"), s.here("search", "tides", "--", "-low"))
	require.Equal(t, result{exitNothing, "", ""}, s.here("search", "zanzibar"))
	for query, why := range map[string]string{"role:x": "role: is user", `"a`: "does not end with one", "-o": ""} {
		requireStatus(t, exitNotDone, s.here("search", query), why)
	}
	requireStatus(t, exitNotDone, s.here("search"))
	requireStatus(t, exitNotDone, s.here("search", "-o", "redact", "x", "in:archive"), "no archive")

	source := s.source
	s.source = "/nowhere"
	requireStatus(t, exitNotDone, s.here("search", "x"), "/nowhere does not exist")
	s.source = source
	require.Regexp(t, "\tarchive/[^\t]*/entries/", s.here("search", "after:2000-01-01", "in:archive").stdout)
}

// A session that cannot be read is said, the others are searched, and the status tells.
func TestSearchUnreadable(t *testing.T) {
	s := commandStore(t)
	if os.Geteuid() == 0 {
		s.user = user{"user", nobody}
	}
	found, err := filepath.Glob(filepath.Join(s.source, "sessions/*/*_019d3d9*.jsonl"))
	require.NoError(t, err)
	require.NoError(t, os.Chmod(found[0], 0))
	s.chown()
	r := s.run("search", "-s", s.source, "tides")
	requireStatus(t, exitNotDone, r, "could not be searched: ", filepath.Base(found[0]))
	require.Contains(t, r.stdout, "\tsessions/")
}

// For people: what was found in colour, and nothing that a terminal would obey.
func TestSearchOnTerminal(t *testing.T) {
	at := time.Date(2026, 3, 30, 7, 13, 41, 0, time.Local)
	hits := []search.Hit{
		{Tree: "sessions", File: "p/a.jsonl", Session: "Low \x1b[2J", Entry: "0a", What: "user-tides", Time: at, Line: "\tthe tides\x1b]0;x\a of \u009b1m\u202e"},
		{Tree: "sessions", File: "p/a.jsonl", Session: "Low \x1b[2J", What: search.TitleLabel, Time: at, Line: "Tide"},
	}
	query, err := search.ParseQuery("tide")
	require.NoError(t, err)
	var out bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetContext(context.Background())
	cmd.SetOut(&out)
	p := &hitPrinter{cmd: cmd, out: bufio.NewWriter(&out), marks: query.Marks(), isTerminal: true}
	require.NoError(t, p.session(&search.Found{Hits: hits}))
	const plain = "Low ?[2J\nsessions/p/a\n" +
		"  2026-03-30 07:13:41  user-tides  entries/0a.json\n     the tides?]0;x? of ?1m?\n" +
		"  2026-03-30 07:13:41  title  title\n    Tide\n"
	require.Equal(t, plain, out.String())
	require.NoError(t, p.end(nil))
	out.Reset()
	p.colours = true
	require.NoError(t, p.session(&search.Found{Hits: hits}))
	require.Contains(t, out.String(), "the \x1b[1;31mtide\x1b[0ms?]0;x? of")
	require.Equal(t, "\n"+plain, strings.NewReplacer(colourMatch, "", colourPath, "", colourTitle, "", colourEnd, "").Replace(out.String()))

	for _, c := range []struct {
		noColour, term string
		want           bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		require.Equal(t, c.want, wantsColours(func(name string) string {
			return map[string]string{"NO_COLOR": c.noColour, "TERM": c.term}[name]
		}))
	}
	require.False(t, newHitPrinter(cmd, query.Marks()).colours, "the output is no terminal")
}

// The command tells what by-file/ does, also of a relative path and of a file that is gone.
func TestTouched(t *testing.T) {
	s := commandStore(t)
	r := s.here("touched", "/home/dev/tidetable/main.go")
	require.Equal(t, exitFound, r.code, r.stderr)
	table := s.here("cat", "by-file/home/dev/tidetable/main.go/results.tsv").stdout
	require.Greater(t, strings.Count(table, "\n"), 3)
	require.ElementsMatch(t, strings.Split(table, "\n"), strings.Split(r.stdout, "\n"))
	require.Contains(t, r.stdout, "\tedit main.go\n")
	require.Equal(t, r, s.here("touched", "/home/dev/tidetable/x/../main.go"))
	require.Equal(t, exitFound, s.here("touched", "/home/dev").code)
	require.Equal(t, result{exitNothing, "", ""}, s.here("touched", "main.go"), "it is that of the working directory")
	requireStatus(t, exitNotDone, s.here("touched"))
}
