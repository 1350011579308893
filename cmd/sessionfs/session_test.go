//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/source"
	"sessionfs/testdata"
)

// The sessions of the sample store that tests name.
const (
	hourLate = "019d3d96-6b66-7996-8ead-42aae5653abc"
	hourFile = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_" + hourLate
)

// Without -s, SOURCE is what the argument lies in: a mount, as it was mounted, an agent directory, or a file alone.
func TestPlaces(t *testing.T) { forEachUser(t, testPlaces) }

func testPlaces(t *testing.T, s *store) {
	agent, copies, masked := s.mkdir("elsewhere/agent"), s.mkdir("copies"), s.mkdir("masked")
	require.NoError(t, os.RemoveAll(agent))
	require.NoError(t, os.Mkdir(agent, 0o700))
	require.NoError(t, source.Unpack(testdata.Demo(), agent))
	s.chown()
	file := filepath.Join(agent, hourFile) + ".jsonl"
	s.exec("cp", file, filepath.Join(copies, "copy.jsonl")).ok(t)
	require.Zero(t, s.run(agent, s.mountpoint).code)
	require.Zero(t, s.run("-o", "redact", agent, masked).code)

	in := func(dir string, args ...string) result {
		cmd := s.command(program, args...)
		cmd.Dir = dir
		return s.finish(cmd)
	}
	want := in(agent, "export", "019d3d9")
	require.Zero(t, want.code, want)
	require.Contains(t, want.stdout, "An hour late, a hand too high")
	session := filepath.Join(s.mountpoint, hourFile)
	require.NoError(t, os.Symlink(filepath.Join(s.mountpoint, "by-id", hourLate), filepath.Join(s.dir, "favourite")))
	for _, at := range [][2]string{ // a working directory, and an argument
		{s.dir, session}, {s.dir, session + ".jsonl"}, {s.dir, filepath.Join(s.mountpoint, "by-id/019d3d9")}, {s.dir, "favourite"},
		{session, "."}, {session + "/entries", "."}, {s.mountpoint, "019d3d9"}, {s.mountpoint + "/by-id", hourLate},
		{s.mountpoint + "/recent", "by-id/019d3d9"},
		{agent, "."}, {s.dir, file}, {filepath.Dir(file), filepath.Base(file)}, {strings.TrimSuffix(file, ".jsonl"), "."},
	} {
		if at[0] == agent {
			at[1] = hourFile
		}
		got := in(at[0], "export", at[1])
		require.Zero(t, got.code, "%s: %s", at, got.stderr)
		require.Equal(t, want.stdout, got.stdout, at)
	}
	for _, query := range [][]string{{"search", "-l", "harmonic"}, {"touched", "-l", "/home/dev/tidetable"}, {"stats"}} {
		want := s.run(append(query, "-s", agent)...)
		require.Zero(t, want.code, want)
		for _, dir := range []string{s.mountpoint, session, agent} {
			require.Equal(t, want, in(dir, query...), "%s in %s", query, dir)
		}
		require.Contains(t, in(copies, query...).stderr, filepath.Join(s.dir, ".omp/agent")+" does not exist")
	}
	write := func(dir, at, title string) result {
		cmd := s.command(program, "write", at)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(title)
		return s.finish(cmd)
	}
	for at, title := range map[string]string{filepath.Join(session, "title"): "A", file + "/title": "B", "019d3d9/title": "C"} {
		require.Zero(t, write(s.mountpoint, at, title).code, at)
		require.Equal(t, title+"\n", in(session, "cat", "./title").stdout)
	}
	// A new session has a file at once, which a command finds beside the mount.
	r := s.exec("sh", "-c", `exec 3<>"$1/new-session"; echo "$2" >&3; read -r session <&3; cd "$1/$session" && "$3" export .`, "sh",
		s.mountpoint, copies, program)
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "<!DOCTYPE html>")
	// What a redacted mount shows is redacted, and a file alone is only read.
	requireStatus(t, exitFailure, write(masked, "019d3d9/title", "D"), "read-only")
	r = in(copies, "export", "copy.jsonl#3a1")
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "An hour late, a hand too high")
	r = in(masked, "ls", ".")
	require.NotContains(t, r.stdout, "history")
	// What is no path of a mount is one of the tree of the default SOURCE.
	requireStatus(t, exitSource, in(copies, "ls", "recent"), filepath.Join(s.dir, ".omp/agent"))
}
