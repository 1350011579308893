package fs_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Real faults below: the errno of docs/design.md section 7; and the file as it was.

// tmpfs mounts a small file system, which only root may do.
func tmpfs(t testing.TB, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount a tmpfs")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		missing(t, "a tmpfs cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// writtenIn makes a source of a directory, with the session s as newWriting does, and mounts it.
func writtenIn(t testing.TB, dir string, content string) *writing {
	a := agentIn(t, dir)
	a.write("s", content)
	return &writing{a, mountForTest(t, a.dir)}
}

// bigImage is an image whose blob takes n bytes.
func bigImage(n int) string {
	return `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("QUJD", n/3) + `"}]}}`
}

// TestFullDisk: on a full tmpfs of 1 MB every write that needs room is ENOSPC, the file is as it was and
// nothing is left behind; when there is room again, they work.
func TestFullDisk(t *testing.T) {
	content := header("s") + strings.Join(writtenEntries, "") + entry(4, "e4", "e3", strings.Repeat("x", 200_000))
	w := writtenIn(t, tmpfs(t, "size=1m,mode=0755"), content)
	dir := w.dir
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
		before, list := w.raw("s"), listing(t, dir)
		require.ErrorIs(t, put(path, text), want, what)
		w.unchanged(before, what)
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
	w.wellRead()
}

// plainUser is the user that a daemon runs as where we are root, which no mode stops.
const plainUser = 65534

// asPlainUser returns the options of a mount by an ordinary user, and what runs a tool as that user.
func asPlainUser(t testing.TB, a agent) ([]mountOption, func(script string, args ...string) (string, error)) {
	t.Helper()
	prefix := []string{"bash"}
	var opts []mountOption
	if os.Geteuid() == 0 {
		if st, err := os.Stat("/dev/fuse"); err != nil || st.Mode().Perm()&0o006 != 0o006 {
			t.Skip("/dev/fuse is for root alone here")
		}
		if _, err := exec.LookPath("fusermount3"); err != nil {
			t.Skip("an ordinary user needs fusermount3")
		}
		binary := filepath.Join(t.TempDir(), "daemon")
		run(t, "cp", mustExecutable(t), binary)
		require.NoError(t, os.Chmod(binary, 0o755))
		require.NoError(t, filepath.WalkDir(a.dir, func(path string, _ fs.DirEntry, err error) error {
			require.NoError(t, err)
			return os.Lchown(path, plainUser, plainUser)
		}))
		for dir := a.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			require.NoError(t, os.Chmod(dir, 0o755))
		}
		opts = append(opts, func(c *mountConfig) { c.binary, c.uid = binary, plainUser })
		prefix = []string{"setpriv", "--reuid", fmt.Sprint(plainUser), "--regid", fmt.Sprint(plainUser), "--clear-groups", "bash"}
	}
	return opts, func(script string, args ...string) (string, error) {
		_, problems, err := tool(t, prefix[0], append(append(prefix[1:len(prefix):len(prefix)], "-c", script, "bash"), args...)...)
		return problems, err
	}
}

func mustExecutable(t testing.TB) string {
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

// TestReadOnlySource: a source that its user may not write to, or that lies on a file system mounted
// read-only.
func TestReadOnlySource(t *testing.T) {
	for name, c := range map[string]struct{ file, dir os.FileMode }{"file": {0o444, 0o755}, "directory": {0o644, 0o555}} {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			a.write("s", header("s"), strings.Join(writtenEntries, ""))
			opts, user := asPlainUser(t, a)
			require.NoError(t, os.Chmod(a.path("s.jsonl"), c.file))
			require.NoError(t, os.Chmod(a.path(""), c.dir))
			t.Cleanup(func() { _ = os.Chmod(a.path(""), 0o755) })
			w := &writing{a, mountForTest(t, a.dir, opts...)}
			before := statListing(t, a.dir)
			for what, script := range everyWrite {
				problems, err := user(script, w.in())
				require.Error(t, err, what)
				require.Contains(t, problems, "Permission denied", what)
			}
			require.Equal(t, before, statListing(t, a.dir))
		})
	}
	t.Run("file system", func(t *testing.T) {
		dir := tmpfs(t, "size=1m,mode=0755")
		w := writtenIn(t, dir, header("s")+strings.Join(writtenEntries, ""))
		w.m.stop()
		require.NoError(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		w.m = mountForTest(t, w.dir)
		w.refusesEveryWrite("Read-only file system")
		w.refusesFork("Read-only file system")
		require.ErrorIs(t, put(w.m.path("new-session"), anywhere("/in/memory")+"\n"), syscall.EROFS)
		require.Contains(t, run(t, "cat", w.m.path("last-error")), ": read-only file system")
	})
}
