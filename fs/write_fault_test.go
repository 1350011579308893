package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Real faults below: the errno of docs/design.md section 7; and the file as it was.

// bigImage is an image whose blob takes n bytes.
func bigImage(n int) string {
	return `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("QUJD", n/3) + `"}]}}`
}

// TestFullDisk: on a full tmpfs of 1 MB every write that needs room is ENOSPC, the file is as it was and
// nothing is left behind; when there is room again, they work.
func TestFullDisk(t *testing.T) {
	content := header("s") + strings.Join(writtenEntries, "") + entry(4, "e4", "e3", strings.Repeat("x", 200_000))
	a := agentIn(t, mountPoint(t, "mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "tmpfs"))
	a.write("s", content)
	w, dir := &writing{a, mountForTest(t, a.dir)}, a.dir
	pending := ask(t, w.m.path("new-session"), anywhere("/somewhere/else"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "blobs"), 0o700)) // a directory stays, if empty
	filler := filepath.Join(dir, "filler")
	fill := func(left int64) {
		_ = os.Remove(filler)
		var st unix.Statfs_t
		require.NoError(t, unix.Statfs(dir, &st))
		require.NoError(t, os.WriteFile(filler, make([]byte, max(0, int64(st.Bavail)*st.Bsize-left)), 0o600))
	}
	refused := func(what, path, text string, want error) {
		t.Helper()
		before := w.raw("s")
		list := listing(t, dir)
		require.ErrorIs(t, put(path, text), want, what)
		require.Equal(t, before, w.raw("s"), what)
		require.Equal(t, list, listing(t, dir), "%s leaves nothing", what)
	}
	fill(64 << 10) // room for the lock and small lines, not for these
	refused("many lines", w.in("append"), strings.Repeat(message(strings.Repeat("y", 1_000))+"\n", 100), syscall.ENOSPC)
	require.Regexp(t, `append: line 1: append p/s\.jsonl: no space left on device \(0 applied\); make room where SOURCE is\n$`, w.read("last-error"))
	refused("a blob", w.in("append"), bigImage(150_000)+"\n", syscall.ENOSPC)
	refused("a title in the header", w.in("title"), "new title\n", syscall.ENOSPC)
	refused("a fork", w.in("fork"), "e4\n", syscall.ENOSPC)
	require.NoError(t, put(w.in("append"), message("short")+"\n"), "what there is room for works")
	fill(0)
	refused("the lock", w.in("append"), message("short")+"\n", syscall.ENOSPC)
	refused("a line of a new session", w.m.path(pending, "append"), message("x")+"\n", syscall.ENOSPC)
	refused("a new session", w.m.path("new-session"), anywhere("/somewhere/else")+"\n", syscall.ENOSPC)

	require.NoError(t, os.Remove(filler))
	w.takesEveryWrite()
	require.NoError(t, put(w.in("append"), bigImage(150_000)+"\n"))
	require.NoError(t, put(w.m.path(pending, "append"), message("x")+"\n"))
	require.Empty(t, w.read("problems.jsonl"))
}

// TestReadOnly: with -o ro, and where the file system of SOURCE is mounted read-only, every write is EROFS. It is EACCES where
// SOURCE has modes that the user may not write to (scripts/test runs this as an ordinary user, too).
func TestReadOnly(t *testing.T) {
	readOnly := func(t *testing.T, w *writing) {
		w.refusesEveryWrite("Read-only file system")
		_, problems, err := tool(t, "bash", "-c", `echo e1 > "$1/fork"`, "bash", w.in())
		require.Error(t, err)
		require.Contains(t, problems, "Read-only file system")
		require.ErrorIs(t, put(w.m.path("new-session"), anywhere("/x")+"\n"), syscall.EROFS)
		require.Equal(t, writtenEntries[3], w.read("leaf"))
	}
	t.Run("option", func(t *testing.T) {
		w := newWriting(t, func(o *daemonOptions) { o.ReadOnly = true })
		readOnly(t, w)
		require.ErrorIs(t, unix.Symlink("e1", w.in("x")), syscall.EROFS)
		require.ErrorIs(t, unix.Unlink(w.in("leaf")), syscall.EROFS)
	})
	t.Run("file system", func(t *testing.T) {
		dir := mountPoint(t, "mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "tmpfs")
		a := agentIn(t, dir)
		a.write("s", header("s"), strings.Join(writtenEntries, ""))
		require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		w := &writing{a, mountForTest(t, a.dir)}
		readOnly(t, w)
		require.Contains(t, run(t, "cat", w.m.path("last-error")), ": read-only file system")
	})
	for name, modes := range map[string]struct{ file, dir os.FileMode }{"file": {0o444, 0o755}, "directory": {0o644, 0o555}} {
		t.Run(name, func(t *testing.T) {
			if os.Geteuid() == 0 {
				t.Skip("no mode stops root")
			}
			w := newWriting(t)
			require.NoError(t, os.Chmod(w.path("s.jsonl"), modes.file))
			require.NoError(t, os.Chmod(w.path(""), modes.dir))
			t.Cleanup(func() { _ = os.Chmod(w.path(""), 0o755) })
			w.refusesEveryWrite("Permission denied")
		})
	}
}
