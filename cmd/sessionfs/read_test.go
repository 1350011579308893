//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/rivo/uniseg"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/view"
)

// onTerminal runs the program on a terminal of its own.
func (s *store) onTerminal(env string, args ...string) result {
	s.t.Helper()
	line := "exec env TERM=xterm " + env + " " + program + " '" + strings.Join(args, "' '") + "' -s " + s.source
	terminal := s.command("script", "-q", "-e", "-c", line, "/dev/null")
	terminal.Stdin = strings.NewReader("")
	r := s.finish(terminal)
	r.stdout = strings.ReplaceAll(r.stdout, "\r\n", "\n")
	return r
}

// show prints what transcript.md has, in colours and through a pager only on a terminal that wants them.
func TestShow(t *testing.T) {
	s := commandStore(t)
	r := s.here("show", "019d3d9")
	require.Equal(t, s.here("cat", "by-id/019d3d9/transcript.md"), r)
	branch := s.here("cat", "by-id/019d3d9/branches/6ab2fbe0/transcript.md")
	require.Equal(t, branch, s.here("show", "019d3d9#6ab2"))
	requireStatus(t, exitFailure, s.here("show", "none"), "none is not a session")
	requireStatus(t, exitUsage, s.here("show", "by-id/*"), "5 sessions")

	require.Equal(t, r.stdout, s.onTerminal("PAGER=cat NO_COLOR=1", "show", "019d3d9").stdout)
	coloured := s.onTerminal("PAGER=", "show", "019d3d9")
	require.Zero(t, coloured.code)
	for _, want := range []string{
		view.ColourTitle + "## User · 2026-03-30 07:13:41 · 6d471159" + view.ColourEnd + "\n",
		view.ColourDim + "```diff" + view.ColourEnd + "\n" + view.ColourRed + "--- main.go" + view.ColourEnd + "\n",
		view.ColourPath + "@@" + view.ColourEnd + "\n", view.ColourDim + "> *Thinking*" + view.ColourEnd + "\n",
		"\nFAIL\n", "\n**`read`** — Reading the test\n",
	} {
		require.Contains(t, coloured.stdout, want)
	}
	require.Equal(t, r.stdout, uncoloured(coloured.stdout))
	first := s.onTerminal("NO_COLOR=1 PAGER='head -n 1'", "show", "019d3d9")
	require.Equal(t, result{stdout: "# An hour late, a hand too high\n"}, first, "who leaves the pager has read enough")
}

// uncoloured returns the text of a terminal without its colours.
func uncoloured(shown string) string {
	for _, colour := range []string{
		view.ColourTitle, view.ColourDim, view.ColourRed, view.ColourGreen, view.ColourPath, view.ColourMatch, view.ColourEnd,
	} {
		shown = strings.ReplaceAll(shown, colour, "")
	}
	return shown
}

// log has the branches of branches.tsv, and all entries if it is told so.
func TestLog(t *testing.T) {
	s := commandStore(t)
	r := s.here("log", "019d3d9").ok(t)
	require.True(t, strings.HasPrefix(r.stdout, "* 3a17833e (leaf) 2026-03-30 08:00:15 assistant: Green on both machines."), r.stdout)
	require.Contains(t, r.stdout, "\n| * 829e4cce (lost) 2026-03-30 07:39:04 label: fudge factor\n| * d00726d0 (label: fudge factor) 2026")
	require.Contains(t, r.stdout, "\n|/\n* 902859a2 2026-03-30 07:38:07 assistant: bash go run . -check testdata/gauge-2026-03-28.csv\n")
	tips := s.here("cat", "by-id/019d3d9/branches.tsv").stdout
	require.Equal(t, strings.Count(tips, "\tlost\t"), strings.Count(r.stdout, "(lost"))
	all := s.here("log", "-a", "019d3d9").stdout
	for _, name := range strings.Fields(s.here("ls", "by-id/019d3d9/entries").stdout) {
		require.Contains(t, all, "* "+strings.TrimSuffix(name, ".json")+" ")
	}
	leaf := "* " + view.ColourName + "3a17833e" + view.ColourEnd + " " + view.ColourMatch + "(leaf)" + view.ColourEnd + " 2026"
	require.Contains(t, s.onTerminal("PAGER=cat", "log", "019d3d9").stdout, leaf)
	requireStatus(t, exitFailure, s.here("log", "none"), "none is not a session")

	terminal, output := openTerminal(t) // of 80 columns
	cmd := s.command(program, "log", "-n", "3", "-s", s.source, "019d3d9")
	cmd.Stdout, cmd.Env = terminal, append(cmd.Env, "PAGER=cat", "TERM=xterm", "NO_COLOR=1")
	require.NoError(t, cmd.Run())
	_, err := terminal.WriteString("end")
	require.NoError(t, err)
	lines := strings.Split(readTo(t, output, "end"), "\r\n")
	require.Len(t, lines, 3+1)
	for _, line := range lines[:3] {
		require.Equal(t, 80, uniseg.StringWidth(line), line)
		require.True(t, strings.HasSuffix(line, "…"), line)
	}
}

// The statuses of diff are those of diff(1), also of a fork and the session that it was forked from.
func TestDiff(t *testing.T) {
	s := commandStore(t)
	require.Equal(t, result{exitFound, "", ""}, s.here("diff", "019d3d9", "by-id/019d3d9/branches/current"))
	r := s.here("diff", "019d3d9", "019d3d9#6ab2fbe0")
	require.Equal(t, exitNothing, r.code, r.stderr)
	require.True(t, strings.HasPrefix(r.stdout,
		"--- 019d3d9\n+++ 019d3d9#6ab2fbe0\n@@ in common: 12 turns, to Assistant · 2026-03-30 07:48:31 · 3f1db87b · "), r.stdout)
	require.Contains(t, r.stdout, "\n-## User · 2026-03-30 07:54:32 · f4147cc3\n+## User · 2026-03-30 07:50:59 · 1dff4bf8\n \n-Last thing for today.")
	require.Equal(t, exitNothing, s.here("diff", "019d3d9", "019d42a").code)
	require.Contains(t, s.onTerminal("PAGER=cat", "diff", "019d3d9", "019d42a").stdout, view.ColourRed+"-## Compaction")
	requireStatus(t, exitNotDone, s.here("diff", "019d3d9", "none"), "none is not a session")
	requireStatus(t, exitNotDone, s.here("diff", "019d3d9"), "2 arg")
	require.Zero(t, s.fed("9a943a76\n", "write", "by-id/019d3d9/fork").code)
	fork := "by-id/019d3d9/children/" + strings.Fields(s.here("ls", "-t", "by-id/019d3d9/children").stdout)[0]
	require.Equal(t, result{}, s.here("diff", "019d3d9#9a943a76", fork))
	require.Equal(t, exitNothing, s.here("diff", "019d3d9", fork).code)
}
