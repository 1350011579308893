//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/view"
)

// The command finds what a mount does, on lines that begin with a path that cat takes; its statuses are those of grep.
func TestSearch(t *testing.T) {
	s := commandStore(t)
	for _, query := range []string{"tides", "go role:user", `"high water" -low`, "tool:bash"} {
		r := s.here("search", query)
		require.Equal(t, exitFound, r.code, query)
		require.Empty(t, r.stderr)
		var want strings.Builder
		for line := range strings.Lines(s.here("cat", "search/"+query+"/results.tsv").stdout) {
			if f := strings.Split(line, "\t"); f[0] != "time" {
				want.WriteString(strings.Join([]string{f[3], f[0], f[2], f[4], f[6]}, "\t"))
			}
		}
		require.Equal(t, want.String(), r.stdout, query)
		hit, _, _ := strings.Cut(r.stdout, "\t")
		require.Equal(t, exitFound, s.here("cat", hit).code, hit)
	}
	require.Equal(t, s.here("search", "go role:user"), s.here("search", "go", "role:user"))
	require.Equal(t, s.here("search", "tides -low"), s.here("search", "tides", "--", "-low"))
	require.Equal(t, result{exitNothing, "", ""}, s.here("search", "zanzibar"))
	for query, why := range map[string]string{"role:x": "role: is user", "rol:user": "agent: after:", "agent:x": "agent: is omp here",
		`"a`: "does not end with one", "-o": ""} {
		requireStatus(t, exitNotDone, s.here("search", query), why)
	}
	requireStatus(t, exitNotDone, s.here("search"))
	requireStatus(t, exitNotDone, s.here("search", "-o", "redact", "x", "in:archive"), "no archive")

	source := s.source
	s.source = "/nowhere"
	requireStatus(t, exitNotDone, s.here("search", "x"), "/nowhere does not exist")
	s.source = source
	require.Regexp(t, "^archive/[^\t]*/entries/", s.here("search", "after:2000-01-01", "in:archive").stdout)
}

// What the options print, of hits and of sessions.
func TestSearchOptions(t *testing.T) {
	s := commandStore(t)
	all := s.here("search", "tide").stdout
	hits := strings.Count(all, "\n")
	sessions, total := s.here("search", "-l", "tide").stdout, 0
	for line := range strings.Lines(s.here("search", "-c", "tide").stdout) {
		dir, count, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		n, err := strconv.Atoi(count)
		require.NoError(t, err)
		require.Equal(t, n, strings.Count(all, dir+"/entries/")+strings.Count(all, dir+"/title\t"), dir)
		require.Contains(t, sessions, dir+"\n")
		total += n
	}
	require.Equal(t, hits, total)
	require.Equal(t, 1, strings.Count(s.here("search", "-l", "-m1", "tide").stdout, "\n"))
	r := s.here("search", "-m", "2", "tide")
	require.Equal(t, 2, strings.Count(r.stdout, "\n"))
	require.Empty(t, r.stderr)
	require.Equal(t, result{exitFound, all, ""}, s.here("search", "-m0", "tide"))
	require.Equal(t, result{exitFound, all, ""}, s.here("search", "-E", "(?i)tide"))
	require.Equal(t, s.here("search", "tide role:user").stdout, s.here("search", "-E", "(?i)tid(e)", "role:user").stdout)
	requireStatus(t, exitNotDone, s.here("search", "-E", "(", "x"), "missing closing )")

	lines := strings.SplitAfter(s.here("search", "--json", "tide").stdout, "\n")
	require.Len(t, lines, hits+1)
	var hit struct{ Time, Session, What, Path, Text, Prompt string }
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &hit))
	require.Equal(t, strings.SplitAfter(all, "\n")[0], strings.Join([]string{hit.Path, hit.Time, hit.What, hit.Text, cmp.Or(hit.Prompt, "-")}, "\t")+"\n")
	var session struct {
		Path, Session string
		Hits          int
	}
	require.NoError(t, json.Unmarshal([]byte(s.here("search", "--json", "-c", "-m1", "tide").stdout), &session))
	require.Positive(t, session.Hits)
	require.NotEmpty(t, session.Session)
}

// A session that cannot be read is said, the others are searched, and the status tells.
func TestSearchUnreadable(t *testing.T) {
	s := commandStore(t)
	if os.Geteuid() == 0 {
		s.user = user{"user", nobody}
	}
	found := glob(t, filepath.Join(s.source, "sessions/*/*_019d3d9*.jsonl"))
	require.NoError(t, os.Chmod(found[0], 0))
	s.chown()
	r := s.run("search", "-s", s.source, "tides")
	requireStatus(t, exitNotDone, r, "could not be searched: ", filepath.Base(found[0]))
	require.Contains(t, r.stdout, "sessions/")
	file := filepath.Join(s.dir, "main.go")
	require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o644))
	for _, args := range [][]string{{"blame"}, {"touched", "-p"}} {
		r = s.run(append(args, "-s", s.source, file)...)
		requireStatus(t, exitNotDone, r, "could not be searched: ", filepath.Base(found[0]))
	}
}

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
	require.Equal(t, plain+second, uncoloured(out.String()))

	for _, c := range []struct {
		noColour, term string
		want           bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		require.Equal(t, c.want, wantsColours(func(name string) string {
			return map[string]string{"NO_COLOR": c.noColour, "TERM": c.term}[name]
		}))
	}
}

// The command tells what by-file/ does, also of a relative path and of a file that is gone.
func TestTouched(t *testing.T) {
	s := commandStore(t)
	r := s.here("touched", "/home/dev/tidetable/main.go")
	require.Equal(t, exitFound, r.code, r.stderr)
	require.Greater(t, strings.Count(r.stdout, "\n"), 2)
	require.Regexp(t, "^sessions/[^\t]*/entries/[^\t]*\t2026-[^\t]*\tassistant\tedit main.go\tBoth, please. And the title", r.stdout)
	require.Equal(t, strings.Count(s.here("cat", "by-file/home/dev/tidetable/main.go/results.tsv").stdout, "\n"), strings.Count(r.stdout, "\n")+1)
	require.Equal(t, r, s.here("touched", "/home/dev/tidetable/x/../main.go"))
	require.Equal(t, exitFound, s.here("touched", "/home/dev").code)
	require.Equal(t, result{exitNothing, "", ""}, s.here("touched", "main.go"), "it is that of the working directory")
	requireStatus(t, exitNotDone, s.here("touched"))
}
