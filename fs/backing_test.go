package fs_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// backings are the kinds of file systems that SOURCE may be on. Each shows an agent directory elsewhere, and returns
// where, and the directory behind it that programs can use as well, "" if there is none.
var backings = map[string]func(t *testing.T, dir string) (shown, behind string){
	"tmpfs": func(t *testing.T, dir string) (string, string) {
		shown := mountPoint(t, "mount", "-t", "tmpfs", "tmpfs")
		run(t, "cp", "-a", dir+"/.", shown)
		return shown, ""
	},
	"overlayfs": func(t *testing.T, dir string) (string, string) {
		top := mountPoint(t, "mount", "-t", "tmpfs", "tmpfs") // an upper directory cannot be on every file system
		upper := filepath.Join(top, "upper")
		work := filepath.Join(top, "work")
		require.NoError(t, os.Mkdir(upper, 0o755))
		require.NoError(t, os.Mkdir(work, 0o755))
		return mountPoint(t, "mount", "-t", "overlay", "overlay", "-o", "lowerdir="+dir+",upperdir="+upper+",workdir="+work), ""
	},
	"bindfs": func(t *testing.T, dir string) (string, string) {
		return mountPoint(t, "bindfs", dir), dir
	},
	"a FUSE loopback": func(t *testing.T, dir string) (string, string) {
		return newLoopback(t, dir, plainly).dir, dir
	},
}

// mountPoint runs a command that mounts, with a directory as its last argument, and returns that directory.
func mountPoint(t *testing.T, command ...string) string {
	t.Helper()
	if _, err := exec.LookPath(command[0]); err != nil {
		missing(t, "%s is not installed", command[0])
	}
	dir := t.TempDir()
	if out, err := exec.Command(command[0], append(command[1:], dir)...).CombinedOutput(); err != nil {
		t.Skipf("%s: %s", strings.Join(command, " "), out)
	}
	t.Cleanup(func() { _ = detach(dir) })
	return dir
}

// TestBackings: what the mount promises holds on these file systems too: everything is read, every write takes effect, a
// live client is seen, what others write is shown at once, and nothing is left behind.
func TestBackings(t *testing.T) {
	fullOnly(t)
	for name, show := range backings {
		t.Run(name, func(t *testing.T) {
			a := newAgent(t)
			a.write("s", header("s"), strings.Join(writtenEntries, ""))
			shown, behind := show(t, a.dir)
			a.dir = shown
			w := &writing{a, mountForTest(t, shown)}
			checkBacking(t, w)
			if behind == "" {
				return
			}
			c := accompany(t, client, filepath.Join(behind, "sessions", "p", "s.jsonl"))
			require.NoError(t, put(w.in("append"), message("beside")+"\n"), "who has the file open behind SOURCE is not seen")
			c.end()
			raw := read(t, filepath.Join(behind, "sessions", "p", "s.jsonl"))
			require.Equal(t, w.raw("s"), string(raw))
		})
	}
}

// checkBacking reads a mount by several tools, writes to it in each way, and changes files below it.
func checkBacking(t *testing.T, w *writing) {
	run(t, "find", w.m.dir)
	run(t, "tar", "-C", w.m.dir, "-cf", "/dev/null", ".")
	require.Equal(t, w.raw("s"), run(t, "cat", w.m.path("sessions/p/s.jsonl")))

	w.forks()
	w.takesEveryWrite()
	run(t, "sync", w.in("append"))
	require.NoError(t, put(w.in("title"), "a title\n"))
	require.Equal(t, "a title\n", w.read("title"))
	for _, name := range names(t, w.path("")) {
		require.Regexp(t, `^([^.].*\.jsonl|p)$`, name, "a lock or a temporary file was left")
	}

	require.NoError(t, put(w.in("append"), message("the leaf")+"\n")) // each of the following would change something
	c := accompany(t, client, w.path("s.jsonl"))
	w.refusesEveryWrite("busy")
	c.end()
	c, _, _ = w.resume("s")
	require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
	c.end()

	checkFollowed(t, w)
	checkReplaced(t, w)
	checkMovedProject(t, w)
}

// checkFollowed has another program append, and reads the new lines through an open file of the mount.
func checkFollowed(t *testing.T, w *writing) {
	tail, err := os.Open(w.in("branches/current/entries.jsonl"))
	require.NoError(t, err)
	defer tail.Close()
	_, err = io.Copy(io.Discard, tail)
	require.NoError(t, err)
	leaf := strings.TrimSuffix(strings.TrimPrefix(readLink(t, w.in("leaf")), "entries/"), ".json")
	for n := range 20 {
		line := entry(10+n, entryID(100+n), leaf, "another program's")
		leaf = entryID(100 + n)
		w.add("s", line)
		time.Sleep(50 * time.Millisecond) // for ten or so the kernel remembers the size of what is open
		more, err := io.ReadAll(tail)
		require.NoError(t, err)
		require.Equal(t, line, string(more))
		require.Equal(t, "entries/"+leaf+".json", readLink(t, w.in("leaf")))
	}
}

// checkReplaced has another program replace the session file, and reads and appends after that.
func checkReplaced(t *testing.T, w *writing) {
	for n := range 20 {
		text := strings.Repeat("r", n+1)
		w.replace("s", header("s"), entry(0, "e0", "", text), strings.Join(writtenEntries[1:], ""))
		require.Contains(t, w.read("entries/e0.json"), `"`+text+`"`)
		require.NoError(t, put(w.in("append"), message(text)+"\n"))
		require.Contains(t, w.raw("s"), `"content":"`+text+`"`)
	}
}

// checkMovedProject moves the directory of a project away and back.
func checkMovedProject(t *testing.T, w *writing) {
	project := w.path("")
	gone := filepath.Join(w.dir, "gone") // not in sessions/, where a session would follow it
	run(t, "mv", project, gone)          // which an overlay refuses to rename, so that mv copies it
	_, err := os.Stat(w.in("leaf"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Error(t, put(w.in("append"), message("x")+"\n"))
	run(t, "mv", gone, project)
	require.NoError(t, put(w.in("append"), message("back")+"\n"))
	require.Contains(t, w.read("transcript.md"), "back")
}
