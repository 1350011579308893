//go:build linux

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/mountopts"
)

// TestAge: a session of the year has no age of zero.
func TestAge(t *testing.T) {
	const day = 24 * time.Hour
	for d, want := range map[time.Duration]string{
		-time.Hour:       "0m",
		59 * time.Minute: "59m",
		23 * time.Hour:   "23h",
		99 * day:         "99d",
		100 * day:        "3mo",
		182 * day:        "5mo",
		364 * day:        "11mo",
		365 * day:        "12mo",
		729 * day:        "23mo",
		730 * day:        "2y",
		1000 * day:       "2y",
		1095 * day:       "3y",
	} {
		require.Equal(t, want, age(d), d)
	}
}

// TestResumeCommand: an id becomes a value, or no command.
func TestResumeCommand(t *testing.T) {
	const id = "0198a000-0000-7000-8000-000000000001"
	for agent, want := range map[string]string{
		"omp":     "omp --resume=" + id,
		"xcsh":    "xcsh --resume=" + id,
		"pi":      "pi --session " + id,
		"claude":  "claude --resume=" + id,
		"codex":   "codex resume -- " + id,
		"another": "",
	} {
		command, ok := resumeCommand(agent, id)
		require.Equal(t, want, strings.Join(command, " "))
		require.Equal(t, want != "", ok)
		for _, id := range []string{
			"", "-", "--", "-r", "--extension=x.ts", " --extension=x.ts", "a b", "a\n--yolo", "a\x00b",
			"\x1b[2J", "..", ".", "../x", "/x", `a\b`, "x.jsonl", "@x", "~", "$(id)", "`id`", "a;b", "'", "\u202ex", "é", id + "\n", strings.Repeat("a", 129),
		} {
			_, ok := resumeCommand(agent, id)
			require.False(t, ok, "%s with %q", agent, id)
		}
	}
	for _, id := range []string{"6ab2fbe0", "of.my_own-1", "_x", id} {
		_, ok := resumeCommand("pi", id)
		require.True(t, ok, id)
	}
	_, ok := resumeCommand("claude", "6ab2fbe0")
	require.False(t, ok)
}

// TestResumptionHome: a command line names the directory of the agent where that is not the one which the agent looks in by
// itself. A session in a database has none.
func TestResumptionHome(t *testing.T) {
	const id = "0198a000-0000-7000-8000-000000000001"
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PI_CODING_AGENT_DIR", "")
	for _, c := range []struct{ agent, source, want string }{
		{"omp", "", ""},
		{"omp", "/srv/agent", "PI_CODING_AGENT_DIR=/srv/agent"},
		{"copilot", "/srv/copilot", "COPILOT_HOME=/srv/copilot"},
		{"gemini", "/srv/.gemini", "GEMINI_CLI_HOME=/srv"},
	} {
		r, err := (&picker{}).resumptionBy(mountopts.AgentDir{Name: c.agent, Source: c.source}, id, "/w")
		require.NoError(t, err)
		require.Equal(t, c.want, r.home, c.agent)
	}
}
