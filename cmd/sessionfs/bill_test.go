//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents/claude/claudetest"
)

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
		got := map[string]*claudetest.Tokens{}
		for line := range bytes.Lines([]byte(s.run("stats", "-s", home, "--by", by, "--json").ok(t).stdout)) {
			var sum struct {
				Day, Model                                              string
				AssistantMessages, Input, Output, CacheRead, CacheWrite int64
			}
			require.NoError(t, json.Unmarshal(line, &sum))
			name := sum.Day + sum.Model
			got[name] = &claudetest.Tokens{
				Answers: sum.AssistantMessages, Input: sum.Input, Output: sum.Output, Read: sum.CacheRead, Write: sum.CacheWrite,
			}
			require.Contains(t, want, name)
			got[name].Hour = want[name].Hour
		}
		require.Equal(t, want, got, by)
	}
}
