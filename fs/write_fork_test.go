package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Forking a session (docs/design.md section 2).

// TestFork: an id gives a new session of the path to it.
func TestFork(t *testing.T) {
	w := newWriting(t)
	require.NoError(t, put(w.in("labels"), "e1 on the path\ne3 elsewhere\ne0 root\n"))
	before := w.raw("s")
	for _, sh := range shells {
		out, problems, err := inShell(t, sh, `exec 3<>"$1" && echo "$2" >&3 && read -r path <&3 && echo "$path"`, w.in("fork"), "e2")
		require.NoError(t, err, problems)
		path := strings.TrimSpace(out)
		require.Regexp(t, `^sessions/p/[0-9TZ-]+_[0-9a-f-]+$`, path)
		w.checkFork(path, sh)
	}
	w.unchanged(before, "a fork")
	for line, want := range map[string]error{"nobody": syscall.ENOENT, "E2": syscall.ENOENT} {
		count := listing(t, w.dir)
		_, err := tryAsk(w.in("fork"), line)
		require.ErrorIs(t, err, want, line)
		require.Contains(t, w.read("last-error"), "fork: ", line)
		require.Equal(t, count, listing(t, w.dir))
	}
	require.Empty(t, run(t, "cat", w.in("fork")))
	answers := strings.Split(ask(t, w.in("fork"), "e0\n\ne1"), "\n")
	require.Len(t, answers, 2)
	require.Empty(t, shell(t, `printf %s e3 > "$1"`, w.in("fork")), "a last line without newline takes effect")
	require.Len(t, names(t, w.m.path("sessions/p")), 2*(1+len(shells)+3))
}

func (w *writing) checkFork(path, what string) {
	t := w.t
	t.Helper()
	onDisk, err := os.ReadFile(filepath.Join(w.dir, path+".jsonl"))
	require.NoError(t, err)
	inMount, err := os.ReadFile(w.m.path(path + ".jsonl"))
	require.NoError(t, err)
	require.Equal(t, string(onDisk), string(inMount), what)
	info, err := os.Stat(filepath.Join(w.dir, path+".jsonl"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	list := records(t, string(onDisk))
	require.Equal(t, []any{"session", 3, w.path("s.jsonl"), "/home/dev/project"}, []any{list[0].Type, list[0].Version, list[0].ParentSession, list[0].CWD})
	require.Contains(t, path, list[0].ID)
	lines := strings.SplitAfter(string(onDisk), "\n")
	require.Equal(t, writtenEntries[:3], lines[1:4], "the entries as they are")
	dir := w.m.path(path)
	labels, err := os.ReadFile(filepath.Join(dir, "labels"))
	require.NoError(t, err)
	require.Equal(t, "e1\ton the path\ne0\troot\n", string(labels), what)
	require.Equal(t, []string{"label", "label"}, []string{list[4].Type, list[5].Type})
	require.Len(t, list, 6)
	require.Equal(t, "e2", list[4].parent())
	require.Equal(t, list[4].ID, list[5].parent())
	problems, err := os.ReadFile(filepath.Join(dir, "problems.jsonl"))
	require.NoError(t, err)
	require.Empty(t, string(problems))
	id := ask(t, filepath.Join(dir, "append"), message("in the fork"))
	require.Equal(t, list[5].ID+"\n", run(t, "jq", "-r", ".parentId", filepath.Join(dir, "entries", id+".json")))
}
