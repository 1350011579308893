//go:build linux

package main

import (
	"encoding/json"
	"encoding/xml"
	"io"
	"path/filepath"
	"strings"
	"testing"

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
	requireStatus(t, exitUsage, s.here("stats", "--by", "who?"), "--by is one of day")
	requireStatus(t, exitUsage, s.here("stats", "--since", "soon"), "--since is a date")
	requireStatus(t, exitUsage, s.here("stats", "--json", "--svg", picture))
}

func TestStatsWords(t *testing.T) {
	for n, want := range map[float64]string{0: "0", 999: "999", 999.6: "1.0k", 9949: "9.9k", 12_345: "12k", 999_500: "1.0M", 2e9: "2.0G", 3e13: "30000G"} {
		require.Equal(t, want, short(n))
	}
	require.Equal(t, "…b/c", (&stats{by: "cwd"}).cut("a/b/c", 4))
	require.Equal(t, "A t…", (&stats{by: bySession}).cut("A title", 4))
	require.Equal(t, "██▌", drawBar(2.5, []string{"█", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}))
	require.Equal(t, "###", drawBar(2.5, []string{"#"}))
}
