package main

import (
	"errors"
	"os"
	"runtime/debug"
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

func TestVersion(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.0", Deps: []*debug.Module{{Path: "x", Version: "v1"}, {Path: "github.com/hanwen/go-fuse/v2", Version: "v2.12.1"}}}
	require.Equal(t, "(devel) (go1.26.0, go-fuse v2.12.1)", describe(info))
	info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}
	require.Equal(t, "(devel) abc (go1.26.0, go-fuse v2.12.1)", describe(info))
	info.Main.Version = "v1.2.3"
	require.Equal(t, "v1.2.3 (go1.26.0, go-fuse v2.12.1)", describe(info))

	s := newStore(t, user{"self", os.Geteuid()})
	r := s.run("--version")
	require.Zero(t, r.code)
	require.Regexp(t, `^sessionfs .*go-fuse v2\.\d+\.\d+\)\n$`, r.stdout)
	r = s.run("-h")
	require.Zero(t, r.code)
	require.Empty(t, r.stderr)
	require.Contains(t, r.stdout, "Exit status")
	for line := range strings.Lines(r.stdout) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
}
