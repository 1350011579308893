//go:build linux

package main

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStats: what is added up is usage.jsonl, by what was asked for, and shown as a table, as JSON and as a picture.
func TestStats(t *testing.T) {
	s := commandStore(t)
	t.Setenv("LC_ALL", "C.UTF-8")
	require.Equal(t, ""+
		"model                        sessions  answers  tokens   cost\n"+
		"anthropic/claude-opus-4-5           3       18    330k  $0.67  █████████████████\n"+
		"anthropic/claude-sonnet-4-5         3       17    244k  $0.29  ███████▎\n"+
		"anthropic/claude-haiku-4-5          1        3     40k  $0.02  ▌\n"+
		"(subagents)                         1        0     12k  $0.01  ▎\n"+
		"total                               5       38    626k  $0.99\n", s.here("stats", "--by", "model").stdout)
	t.Setenv("LC_ALL", "C")
	require.Equal(t, ""+
		"week      sessions  answers  tokens   cost\n"+
		"2026-W16         1        3     40k  $0.02  #########\n"+
		"2026-W20         1        5     74k  $0.08  ####################################\n"+
		"total            2        8    114k  $0.10\n", s.here("stats", "--by", "week", "--since", "2026-04-01").stdout)
	require.Contains(t, s.here("stats", "--by", "tool").stdout, "\nbash                   5     13  ####")
	require.Equal(t, "no session has a cost there\n", s.here("stats", "--since", "0d").stdout)

	type line struct {
		Day, Cwd, Agent string
		Sessions, Calls int
		Output          float64
		Cost            struct{ Total float64 }
	}
	read := func(command string, args ...string) (lines []line, output, cost float64) {
		r := s.here(command, args...).ok(t)
		for d := json.NewDecoder(strings.NewReader(r.stdout)); ; {
			var l line
			err := d.Decode(&l)
			if err == io.EOF {
				return lines, output, cost
			}
			require.NoError(t, err)
			lines, output, cost = append(lines, l), output+l.Output, cost+l.Cost.Total
		}
	}
	_, output, cost := read("cat", "usage.jsonl")
	for _, by := range []string{"day", "week", "model", "cwd", "agent"} {
		lines, got, spent := read("stats", "--json", "--by", by)
		require.NotEmpty(t, lines)
		require.Equal(t, output, got, by)
		require.InDelta(t, cost, spent, 1e-9, by)
	}
	agents, _, _ := read("stats", "--json", "--by", "agent")
	require.Len(t, agents, 1)
	require.Equal(t, []any{"omp", 5}, []any{agents[0].Agent, agents[0].Sessions})
	tools, _, _ := read("stats", "--json", "--by", "tool")
	require.Equal(t, 13, tools[0].Calls)

	picture := filepath.Join(s.dir, "days.svg")
	require.Equal(t, result{}, s.here("stats", "--svg", picture))
	text := readFile(t, picture)
	require.NoError(t, xml.Unmarshal(text, new(any)))
	require.Contains(t, string(text), ">2026-03-30</text><rect ")
	require.NotRegexp(t, `href|url\(|<script|@import`, string(text))
	requireStatus(t, exitUsage, s.here("stats", "--by", "who?"), "--by is one of hour, day")
	requireStatus(t, exitUsage, s.here("stats", "--since", "soon"), "--since is a date")
	requireStatus(t, exitUsage, s.here("stats", "--json", "--svg", picture))
}

// A terminal shows the last 30 days, hours and sessions that have any, and the total of all. --since shows more.
func TestStatsTerminal(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	for i := range 40 {
		at := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC).AddDate(0, 0, i)
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"0123456789abc%03d","timestamp":%q,"cwd":"/work","title":"Talk %[1]d"}
{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":%[2]q,"message":{"role":"user","content":"hello"}}
{"type":"message","id":"bbbbbbbb","parentId":"aaaaaaaa","timestamp":%[2]q,"message":{"role":"assistant","provider":"p","model":"m%[1]d","content":[],`+
			`"usage":{"input":1,"output":%[3]d,"cacheRead":0,"cacheWrite":0,"totalTokens":%[3]d,`+
			`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":%[3]d}}}}
`, i, at.Format(time.RFC3339), 100+i)
		file := filepath.Join(s.source, filepath.Dir(sessionPath), fmt.Sprintf("2026-03-01T00-00-00-000Z_0123456789abc%03d.jsonl", i))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	s.chown()
	shown := func(args ...string) string { return s.onTerminal("", append([]string{"stats"}, args...)...).stdout }
	for by, dates := range map[string][2]string{
		"day": {"2026-03-10 ", "2026-03-11 "}, "hour": {"2026-03-10 10:00 ", "2026-03-11 10:00 "}, "session": {"Talk 9 ", "Talk 10 "},
		"day,model": {"p/m9 ", "p/m10 "},
	} {
		text := shown("--by", by)
		require.Equal(t, 30+3, strings.Count(text, "\n"), text)
		require.NotContains(t, text, dates[0])
		require.Contains(t, text, dates[1])
		require.Regexp(t, `\ntotal +40 +40 .*\$4780.00\nthe last 30 of 40 (day|hour|session)s; --since shows more`, text)
		require.Equal(t, 40+2, strings.Count(s.run("stats", "-s", s.source, "--by", by).stdout, "\n"))
	}
	require.Equal(t, 40+2, strings.Count(shown("--by", "model"), "\n"))
	require.Equal(t, 40+2, strings.Count(shown("--since", "2026-03-01"), "\n"))
	require.Equal(t, 40, strings.Count(shown("--json"), "\n"))
}
