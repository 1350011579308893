package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Directories of SOURCE, and SOURCE itself, are replaced: what is shown is what stands there, and nothing is written to what
// was moved away (docs/design.md section 6). Package dir replaces them during a write, at each system call.

// replaceable makes SOURCE in dir: two sessions, one in the other's artifacts, a blob, a breadcrumb, a history.
func replaceable(t *testing.T, dir string) {
	a := agent{t, dir}
	require.NoError(t, os.MkdirAll(a.path("s0"), 0o755))
	for _, name := range []string{"s0", "s1", "s0/Task"} {
		id := filepath.Base(name)
		a.write(name, header(id), entry(0, "e0", "", "zero"))
	}
	blob := []byte("blob")
	sum := sha256.Sum256(blob)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "blobs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "blobs", hex.EncodeToString(sum[:])), blob, 0o644))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "terminal-sessions"), 0o755))
	crumb := "/home/dev/project\n" + a.path("s0.jsonl") + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "terminal-sessions", "tty1"), []byte(crumb), 0o644))
	python(t, program("history.py")+`db = open_history(sys.argv[1])
db.execute("PRAGMA journal_mode=DELETE")
add(db, "a prompt")
db.close()`, filepath.Join(dir, "history.db"))
}

// TestReplacedIsShown: what stands in SOURCE now is what is shown and written to, with the inode numbers that it had;
// while there is nothing, there is nothing, and nothing is made in the place of a directory that is about to come back.
func TestReplacedIsShown(t *testing.T) {
	for _, what := range []string{"../../top", "../agent", "sessions", "sessions/p"} {
		t.Run(filepath.Base(what), func(t *testing.T) {
			base, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			dir := filepath.Join(base, "top/agent")
			replaceable(t, dir)
			w := &writing{agent{t, dir}, mountForTest(t, dir)}
			target, s0 := filepath.Join(dir, what), w.m.session("s0")
			old := filepath.Join(base, "old") // not in sessions/, where a session would follow it
			inodes := func() string {
				return shell(t, `cd "$1" && stat -c '%i %n' . sessions sessions/p sessions/p/s0 sessions/p/s0/entries sessions/p/s0/entries/e0.json`, w.m.dir)
			}
			before := inodes()
			ask(t, s0+"/append", message("in the first"))
			made := ask(t, w.m.path("new-session"), anywhere("/home/dev/project"))
			require.Equal(t, "sessions/p", filepath.Dir(made))
			ask(t, w.m.path(made, "append"), message("question"))
			require.NoError(t, os.Rename(target, old))
			require.Error(t, put(s0+"/append", message("in nothing")+"\n"))
			require.NoFileExists(t, s0+"/leaf")
			run(t, "ls", w.m.dir, w.m.path("sessions"), w.m.path("recent"))
			require.NoFileExists(t, w.m.path(made, "leaf"))
			require.Error(t, put(w.m.path(made, "append"), assistant("answer")+"\n"))
			require.NoFileExists(t, target)

			run(t, "cp", "-r", old, target)
			first := run(t, "cat", w.m.path("sessions/p/s0.jsonl"))
			require.Contains(t, first, "in the first")
			ask(t, s0+"/append", message("in the second"))
			require.Contains(t, w.raw("s0"), "in the second")
			require.Contains(t, run(t, "cat", s0+"/context.json"), "in the second")
			ask(t, w.m.path(made, "append"), assistant("answer"))
			require.Equal(t, "1 question\n1 answer\n",
				shell(t, `for said in question answer; do echo $(grep -c $said "$1") $said; done`, filepath.Join(dir, made+".jsonl")))
			require.Empty(t, shell(t, `grep -rl 'in the second\|answer' "$1"; true`, old))
			require.Equal(t, before, inodes())

			require.NoError(t, unix.Renameat2(unix.AT_FDCWD, target, unix.AT_FDCWD, old, unix.RENAME_EXCHANGE))
			require.Equal(t, first, run(t, "cat", w.m.path("sessions/p/s0.jsonl")))
			require.NotContains(t, run(t, "cat", s0+"/context.json"), "in the second")
			run(t, "find", w.m.dir)
		})
	}
}

// TestDirectoryBecomesSession: the directory beside a session file is restored before the file, and somebody looks in
// between.
func TestDirectoryBecomesSession(t *testing.T) {
	a := newAgent(t)
	m := mountForTest(t, a.dir)
	for range 20 {
		require.NoError(t, os.MkdirAll(a.path("s"), 0o755))
		_, err := os.Stat(m.session("s", "leaf"))
		require.ErrorIs(t, err, os.ErrNotExist)
		a.write("s", header("s"), entry(0, "e0", "", "zero"))
		require.Equal(t, "entries/e0.json\n", run(t, "readlink", m.session("s", "leaf")))
		require.Contains(t, names(t, m.session("s")), "entries")
		require.NoError(t, os.Remove(a.path("s.jsonl")))
		require.Empty(t, names(t, m.session("s")))
		a.write("s", header("s"), entry(0, "e0", "", "zero"))
		require.Contains(t, names(t, m.session("s")), "entries")
		require.NoError(t, os.Remove(a.path("s.jsonl")))
		require.NoError(t, os.Remove(a.path("s")))
	}
}

// TestFileSystemOfSourceReplaced: SOURCE is unmounted and mounted again, and mounted over.
func TestFileSystemOfSourceReplaced(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	base := t.TempDir()
	disk, source := filepath.Join(base, "disk"), filepath.Join(base, "source")
	replaceable(t, disk)
	require.NoError(t, os.Mkdir(source, 0o755))
	bind := func(from string) {
		run(t, "mount", "--bind", from, source)
		t.Cleanup(func() { _ = unix.Unmount(source, unix.MNT_DETACH) })
	}
	bind(disk)
	m := mountForTest(t, source)
	ask(t, m.session("s0", "append"), message("one"))
	run(t, "umount", "-l", source)
	_, err := os.Stat(m.session("s0", "leaf"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Error(t, put(m.session("s0", "append"), message("x")+"\n"))
	require.Empty(t, names(t, source), "nothing is made below the mount")
	bind(disk)
	ask(t, m.session("s0", "append"), message("two"))
	require.Contains(t, agent{t, disk}.raw("s0"), "two")

	run(t, "mount", "-t", "tmpfs", "none", source)
	require.Empty(t, names(t, m.path("sessions")))
	replaceable(t, source)
	ask(t, m.session("s0", "append"), message("three"))
	require.NotContains(t, agent{t, disk}.raw("s0"), "three")
	require.Contains(t, agent{t, source}.raw("s0"), "three")
	run(t, "df", m.dir)
	run(t, "umount", "-l", source)
	require.Contains(t, run(t, "cat", m.session("s0", "context.json")), "two")
}
