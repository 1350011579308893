//go:build linux

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/claude/claudetest"
	reports "sessionfs/sessioncore/report"
	"sessionfs/source"
	"sessionfs/testdata"
)

// TestSameBytes: a store of several agents has the same sums each time, in whatever order its sessions are read.
func TestSameBytes(t *testing.T) {
	s := newStore(t, user{"user", os.Geteuid()})
	require.NoError(t, source.Unpack(testdata.Demo(), s.mkdir(".omp/agent")))
	require.NoError(t, source.Unpack(testdata.DemoOf("claude"), s.mkdir(".claude")))
	require.NoError(t, source.Unpack(testdata.DemoOf("codex"), s.mkdir(".codex")))
	commands := [][]string{{"cat", "-s", "all", "usage.jsonl"}, {"cat", "-s", "all", "lost.tsv"}, {"search", "-s", "all", "--json", "the"}}
	for _, by := range slices.Concat(reports.Keys, []string{"day,model", "agent,tool"}) {
		commands = append(commands, []string{"stats", "-s", "all", "--json", "--by", by})
	}
	for _, args := range commands {
		first := ""
		for range 6 {
			cmd := s.command(program, args...)
			cmd.Env = append(cmd.Environ(), "GOMAXPROCS=4")
			out := s.finish(cmd).ok(t).stdout
			require.NotEmpty(t, out)
			require.NotRegexp(t, `\.\d{13}`, out, "noise")
			if first == "" {
				first = out
			}
			require.Equal(t, first, out, args)
		}
	}
}

// TestKnownBill: the bill of a made store has each answer once, with the tokens that the generator put into it, by model
// and by day, in however many records, forks and files of subagents an answer stands.
func TestKnownBill(t *testing.T) {
	s := newStore(t, user{"user", os.Geteuid()})
	home := s.mkdir("claude")
	truth, err := claudetest.Make(home, claudetest.Spec{Sessions: 48, Bytes: 2 << 20})
	require.NoError(t, err)
	byDay := map[string]*claudetest.Tokens{}
	for key, tokens := range truth {
		if byDay[key.Day] == nil {
			byDay[key.Day] = &claudetest.Tokens{}
		}
		byDay[key.Day].Add(*tokens)
	}
	byModel := map[string]*claudetest.Tokens{}
	for model, tokens := range truth.ByModel() {
		byModel["anthropic/"+model] = tokens
	}
	for by, want := range map[string]map[string]*claudetest.Tokens{"day": byDay, "model": byModel} {
		printed := s.run("stats", "-s", home, "--by", by, "--json").ok(t).stdout
		counted := map[string]*claudetest.Tokens{}
		for line := range strings.Lines(printed) {
			var sum struct {
				Day, Model                                              string
				AssistantMessages, Input, Output, CacheRead, CacheWrite int64
			}
			require.NoError(t, json.Unmarshal([]byte(line), &sum))
			name := sum.Day + sum.Model // it has one of them
			require.Contains(t, want, name)
			counted[name] = &claudetest.Tokens{
				Answers: sum.AssistantMessages,
				Input:   sum.Input,
				Output:  sum.Output,
				Read:    sum.CacheRead,
				Write:   sum.CacheWrite,
				Hour:    want[name].Hour, // which stats does not print
			}
		}
		require.Equal(t, want, counted, by)
	}
}
