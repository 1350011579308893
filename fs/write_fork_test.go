package fs_test

import (
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

// checkFork: the session in that directory is a fork of e2. Package writer compares forks with those of the client.
func (w *writing) checkFork(path, what string) {
	t := w.t
	t.Helper()
	onDisk, dir := string(read(t, filepath.Join(w.dir, path+".jsonl"))), w.m.path(path)
	require.Equal(t, onDisk, string(read(t, dir+".jsonl")), what)
	list := records(t, onDisk)
	require.Equal(t, []any{w.path("s.jsonl"), "/home/dev/project"}, []any{list[0].ParentSession, list[0].CWD})
	require.Equal(t, writtenEntries[:3], strings.SplitAfter(onDisk, "\n")[1:4], "the entries as they are")
	require.Equal(t, "e1\ton the path\ne0\troot\n", string(read(t, dir+"/labels")), what)
	id := ask(t, dir+"/append", message("in the fork"))
	require.Equal(t, list[len(list)-1].ID+"\n", run(t, "jq", "-r", ".parentId", dir+"/entries/"+id+".json"))
}
