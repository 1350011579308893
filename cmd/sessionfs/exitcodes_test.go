//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/mountopts"
)

func TestExitStatus(t *testing.T) {
	command, helper := mountopts.Command{}, mountopts.Command{Helper: true}
	for _, c := range []struct {
		err           error
		plain, mount8 int
	}{
		{nil, exitOK, exitOK},
		{errors.New("x"), exitFailure, helperMount},
		{refuse(exitUsage, "x"), exitUsage, helperUsage},
		{refuse(exitSource, "x"), exitSource, helperMount},
		{errors.Join(refuse(exitFuse, "x")), exitFuse, helperMount},
	} {
		require.Equal(t, c.plain, exitStatus(c.err, command))
		require.Equal(t, c.mount8, exitStatus(c.err, helper))
	}
}

// The help fits a screen of 24 lines with the prompt below it, and names every command.
func TestHelp(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("-h")
	require.Zero(t, r.code)
	require.Empty(t, r.stderr)
	require.LessOrEqual(t, strings.Count(r.stdout, "\n"), 23)
	requireNarrow(t, r.stdout)
	require.Equal(t, r, s.run("help"))
	require.Equal(t, r, s.run("--help"))
	root := newRoot(streams{})
	require.Greater(t, len(root.Commands()), 8)
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		require.Regexp(t, `(?m)^  [a-z ]*\b`+c.Name()+`\b`, r.stdout)
	}
	r = s.run("help", "mount")
	require.Zero(t, r.code)
	require.Contains(t, r.stdout, "Exit status")
	requireNarrow(t, r.stdout)
	for _, c := range root.Commands() {
		if c.Hidden {
			continue
		}
		r := s.run("help", c.Name())
		require.Zero(t, r.code)
		require.LessOrEqual(t, strings.Count(r.stdout, "\n"), 23, c.Name())
	}
}

// requireNarrow checks that text fits a terminal of 80 columns.
func requireNarrow(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}
