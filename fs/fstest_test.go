package fs_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// rootNames and sessionNames are what is listed in a mount and in the directory of a session without artifacts.
var (
	rootNames = []string{
		"archive", "blobs", "by-cwd", "by-date", "by-file", "by-id", "continue", "history", "index.jsonl", "last-error", "new-session", "recent", "running",
		"search", "sessions", "terminal-sessions",
	}
	sessionNames = []string{
		"append", "branches", "branches.tsv", "by-label", "children", "context.json", "cwd", "entries", "fork", "header.json", "labels", "last-error",
		"leaf", "problems.jsonl", "search", "title", "transcript.md", "tree", "usage.json",
	}
)

// withoutStreams leaves out the control files that are streams, as pipes are: TestFS wants to seek.
type withoutStreams struct{ fs.ReadLinkFS }

func isStream(name string) bool {
	return slices.Contains([]string{"append", "fork", "new-session"}, path.Base(name))
}

// Open implements fs.FS.
func (w withoutStreams) Open(name string) (fs.File, error) {
	f, err := w.ReadLinkFS.Open(name)
	if dir, ok := f.(fs.ReadDirFile); ok && err == nil {
		return dirWithoutStreams{dir}, nil
	}
	return f, err
}

type dirWithoutStreams struct{ fs.ReadDirFile }

// ReadDir implements fs.ReadDirFile.
func (d dirWithoutStreams) ReadDir(n int) ([]fs.DirEntry, error) {
	list, err := d.ReadDirFile.ReadDir(n)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool { return isStream(e.Name()) }), err
}

// TestFS: the mount is a file system as package io/fs wants it. It is not served by this process.
func TestFS(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	const subagent = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc"
	a := demo(t)
	if !full() { // what is read byte by byte takes its time
		require.NoError(t, os.Remove(filepath.Join(a, subagent+".jsonl")))
		require.NoError(t, os.Rename(filepath.Join(a, subagent, "Task-1.jsonl"), filepath.Join(a, subagent+".jsonl")))
		for _, name := range []string{"2026-01-04T20-41-17-660Z_5f79e710-6e4b-4149-ba93-d2c9c8d0e747", "2026-03-31T06-48-09-522Z_019d42a6-5232-7813-8906-b2eb1701614a", "2026-05-11T15-20-36-047Z_019e17a0-35cf-7412-82e6-7ee1afc69662"} {
			require.NoError(t, os.Remove(filepath.Join(a, filepath.Dir(subagent), name+".jsonl")))
		}
	}
	m := mountForTest(t, a)
	require.NoError(t, fstest.TestFS(withoutStreams{os.DirFS(m.dir).(fs.ReadLinkFS)}, "sessions/-tmp-gauge-csv", "terminal-sessions/pts-3", subagent+"/artifacts", subagent+"/entries"))
}
