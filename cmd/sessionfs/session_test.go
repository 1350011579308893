//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/testdata"
)

// The sessions of the sample store that tests name.
const (
	hourLate = "019d3d96-6b66-7996-8ead-42aae5653abc"
	hourFile = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_" + hourLate
)

// A session is named by what people have in hand: an id, its beginning, a path in the tree, its file; with an entry or without.
func TestNamedSessions(t *testing.T) {
	s := commandStore(t)
	src, closeSource, err := (&sourceFlags{source: s.source, args: anySession}).open(newRoot(streams{}, ""), nil)
	require.NoError(t, err)
	defer closeSource()
	for arg, entry := range map[string]string{
		hourLate: "", "019d3d9": "", "019D3D9": "", "2026-03-30t07": "", "by-id/019d3d9": "", "/by-id/019d3d9/": "", hourFile: "", hourFile + ".jsonl": "",
		"by-cwd/home/dev/tidetable/*-An hour late*": "", "by-id/019d3d9/transcript.md": "", "by-id/019d3d9/artifacts/0.bash.log": "",
		filepath.Join(s.source, hourFile) + ".jsonl": "", filepath.Join(s.source, hourFile): "", filepath.Join(s.source, hourFile, "0.bash.log"): "",
		"019d3d9#3a17833e": "3a17833e", "019d3d9#3a1": "3a17833e", "019d3d9/leaf": "3a17833e", "by-id/019d3d9#3a1": "3a17833e",
		"019d3d9/entries/3a17833e.json": "3a17833e", "019d3d9/branches/current/context.json": "3a17833e", "019d3d9/branches/3a17833e": "3a17833e",
		"019d3d9/tree/.deep/3a17833e/entry.json": "3a17833e", "019d3d9/tree": "", filepath.Join(s.source, hourFile) + ".jsonl#3a1": "3a17833e",
	} {
		got, err := src.session(arg)
		require.NoError(t, err, arg)
		require.Equal(t, named{hourFile, entry}, got, arg)
	}
	for arg, want := range map[string]string{
		hourFile + "/artifacts/Task-1.jsonl": hourFile + "/artifacts/Task-1",
		"019b8":                              "archive/--home-dev-tidetable--/2026-01-02T19-22-08-415Z_019b8028-fc9f-7d1c-9c0a-51be0a7d3e62",
	} {
		got, err := src.session(arg)
		require.NoError(t, err, arg)
		require.Equal(t, named{dir: want}, got, arg)
	}
	for arg, want := range map[string]string{
		"019d": "more than one session; type more of it:\n  019", "019d3d9#3a": "more than one entry; type more of it:\n  3a17833e\n  3a35c741",
		"019d3d9#zz": "no entry whose id begins with \"zz\"", "nothing": "is not a session of " + s.source, "nothing#3a1": "is not a session",
		"nothing[": "is not a session", "019d3d9#[": "no entry whose id begins with \"[\"", ".": "is not a session", "recent": "is not a session",
		"recent/*": "stands for 5 sessions",
	} {
		_, err := src.session(arg)
		require.ErrorContains(t, err, want, arg)
	}
}

// Without -s, SOURCE is what the argument lies in: a mount, as it was mounted, an agent directory, or a file alone.
func TestPlaces(t *testing.T) { forEachUser(t, testPlaces) }

func testPlaces(t *testing.T, s *store) {
	agent, copies, masked := s.mkdir("elsewhere/agent"), s.mkdir("copies"), s.mkdir("masked")
	require.NoError(t, os.RemoveAll(agent))
	require.NoError(t, os.Mkdir(agent, 0o700))
	require.NoError(t, unpack(testdata.Demo(), agent))
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
