package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What was written is there, wherever it was written.

// TestSubagents: the sessions in artifacts/ are written to in the same way, by either of their paths.
func TestSubagents(t *testing.T) {
	w := newWriting(t)
	require.NoError(t, os.MkdirAll(w.path("s/deep"), 0o755))
	for _, name := range []string{"s/Task.jsonl", "s/deep/Task.jsonl"} {
		require.NoError(t, os.WriteFile(w.path(name), []byte(header("t")+strings.Join(writtenEntries, "")), 0o644))
	}
	before := w.raw("s")
	for _, dir := range []string{"Task", "artifacts/Task", "deep/Task", "artifacts/deep/Task"} {
		id := ask(t, w.in(dir, "append"), message(dir))
		require.NoError(t, put(w.in(dir, "title"), dir+"\n"))
		require.NoError(t, put(w.in(dir, "labels"), id+" "+strings.ReplaceAll(dir, "/", " ")+"\n"))
		run(t, "ln", "-sfn", "entries/"+id+".json", w.in(dir, "leaf"))
		require.Equal(t, "entries/"+id+".json\n", run(t, "readlink", w.in(dir, "leaf")))
		require.Equal(t, dir+"\n", run(t, "cat", w.in(dir, "title")))
		fork := ask(t, w.in(dir, "fork"), "e1")
		require.Equal(t, "sessions/p/"+filepath.Dir(strings.TrimPrefix(filepath.Join("s", strings.TrimPrefix(dir, "artifacts/")), "./")), filepath.Dir(fork))
		require.FileExists(t, filepath.Join(w.dir, fork)+".jsonl")
		require.DirExists(t, w.m.path(fork), "the path is one in the mount")
		require.ErrorIs(t, put(w.in(dir, "append"), badLine+"\n"), syscall.EINVAL)
		require.Contains(t, w.read(dir, "last-error"), "message.role")
	}
	require.Empty(t, w.read("last-error"), "of this session alone")
	w.unchanged(before, "writes to subagents")
}
