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

func TestHelp(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("-h")
	require.Zero(t, r.code)
	require.Empty(t, r.stderr)
	require.Contains(t, r.stdout, "Exit status")
	for line := range strings.Lines(r.stdout) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
	require.Equal(t, r, s.run("help"))
	require.Equal(t, r, s.run("--help"))
}
