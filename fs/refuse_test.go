package fs_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// refusedOpen is what opening a file for writing fails with that has no write bits: the kernel refuses it by the
// mode, but to root.
func refusedOpen() syscall.Errno {
	if os.Geteuid() != 0 {
		return syscall.EACCES
	}
	return syscall.EPERM
}

// changes are the ways to change a directory, in which something is there.
var changes = map[string]func(dir, there string) error{
	"create":   func(dir, _ string) error { return os.WriteFile(dir+"/new.jsonl", nil, 0o600) },
	"mkdir":    func(dir, _ string) error { return os.Mkdir(dir+"/2026-03-30T07-12-41-318Z_x", 0o700) },
	"mknod":    func(dir, _ string) error { return unix.Mkfifo(dir+"/new", 0o600) },
	"symlink":  func(dir, _ string) error { return os.Symlink("x", dir+"/new") },
	"link":     func(dir, there string) error { return os.Link(dir+"/"+there, dir+"/hard") },
	"unlink":   func(dir, there string) error { return unix.Unlink(dir + "/" + there) },
	"rmdir":    func(dir, there string) error { return unix.Rmdir(dir + "/" + there) },
	"rename":   func(dir, there string) error { return os.Rename(dir+"/"+there, dir+"/old") },
	"chmod":    func(dir, there string) error { return os.Chmod(dir+"/"+there, 0o701) },
	"chmod .":  func(dir, _ string) error { return os.Chmod(dir, 0o701) },
	"touch":    func(dir, there string) error { return os.Chtimes(dir+"/"+there, time.Now(), time.Unix(1, 0)) },
	"truncate": func(dir, there string) error { return os.Truncate(dir+"/"+there, 0) },
	"write":    func(dir, there string) error { return put(dir+"/"+there, "x\n") },
}

// TestNothingIsCopiedIn: nothing is made, moved, written or removed in any directory, with -o ro and without; nothing on disk
// changes, and last-error and the log say why, and what to do instead. TestSlips and TestRemovals have the programs that try.
func TestNothingIsCopiedIn(t *testing.T) {
	t.Parallel()
	source := demo(t)
	m := mountForTest(t, source)
	readOnly := mountForTest(t, source, func(c *mountConfig) { c.options.ReadOnly = true })
	before := treeSum(t, source)
	for name, there := range map[string]string{
		"sessions": "--home-dev-tidetable--", filepath.Dir(demoSession): filepath.Base(demoSession) + ".jsonl", demoSession: "header.json",
		demoSession + "/entries": names(t, m.path(demoSession, "entries"))[0], demoSession + "/artifacts": "0.bash.log", "archive": "index.jsonl",
		"blobs": names(t, m.path("blobs"))[0], "terminal-sessions": "pts-3",
	} {
		require.Contains(t, names(t, m.path(name)), there)
		for how, change := range changes {
			if how == "symlink" && name == demoSession {
				continue // it may become leaf
			}
			var errno syscall.Errno
			require.ErrorAs(t, change(m.path(name), there), &errno, "%s in %s", how, name)
			require.Contains(t, []syscall.Errno{syscall.EPERM, syscall.EACCES, syscall.EROFS, syscall.EISDIR, syscall.ENOTDIR}, errno, "%s in %s", how, name)
			require.ErrorAs(t, change(readOnly.path(name), there), &errno, "%s in %s", how, name)
			require.Contains(t, []syscall.Errno{syscall.EROFS, syscall.EISDIR, syscall.ENOTDIR}, errno, "%s in %s, -o ro", how, name)
		}
		require.Equal(t, before, treeSum(t, source), name)
	}
	for _, op := range []string{"unlink", "rename", "mkdir", "symlink", "create", "setattr"} {
		require.Contains(t, m.logged(), "op="+op+" ")
	}
	for name, want := range map[string]error{
		"sessions/x.jsonl": syscall.EPERM, filepath.Dir(demoSession) + "/x.jsonl": syscall.EPERM, demoSession + "/x.txt": syscall.EPERM,
		"blobs/x": syscall.EPERM, "terminal-sessions/x": syscall.EPERM, "archive/x.jsonl.gz": syscall.EROFS,
	} {
		require.ErrorIs(t, os.WriteFile(m.path(name), nil, 0o600), want, name)
		reason := m.path("last-error")
		if strings.HasPrefix(name, demoSession) {
			reason = m.path(demoSession, "last-error")
		}
		require.Contains(t, run(t, "cat", reason), "sessionfs import", name)
	}
}
