package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Attributes: numbers and times that backup programs rely on, modes and owners that are the access rule
// (docs/design.md sections 6 and 8).

// TestNumbersAndTimesStay: inode numbers are unique in the whole mount, those of a listing are those of stat, and they are
// stable across daemons, as are mtime, ctime, sizes and modes. So a second run of rsync has nothing to do.
func TestNumbersAndTimesStay(t *testing.T) {
	a, to := demo(t), t.TempDir()
	before := ""
	for n := range 2 {
		m := mountForTest(t, a)
		now := run(t, "find", m.dir, "-printf", `%i %T@ %C@ %s %m %U %G %y %n %P\n`)
		require.Greater(t, strings.Count(now, "\n"), 100)
		require.True(t, n == 0 || before == now, "the same in each mount:\n%s\n%s", before, now)
		before = now
		require.Empty(t, shell(t, `find "$1" -printf '%i\n' | sort | uniq -d`, m.dir), "one number twice")
		require.Equal(t, shell(t, `cd "$1" && find . -mindepth 1 -printf '%i %p\n' | sort`, m.dir), python(t, `
import os, sys
os.chdir(sys.argv[1])
def walk(d):
    for e in list(os.scandir(d)):
        yield "%d %s" % (e.inode(), e.path)
        if e.is_dir(follow_symlinks=False): yield from walk(e.path)
print("\n".join(sorted(walk("."))))
`, m.dir), "as a listing tells them")
		changed := run(t, "rsync", "-a", "-i", m.dir+"/", to)
		require.Equal(t, n == 0, changed != "", "rsync finds %s", changed)
		require.Empty(t, run(t, "rsync", "-a", "-i", m.dir+"/", to), "rsync finds changes")
		m.stop()
	}
}

// TestEntryTimes: an entry's mtime is its timestamp; where it has none, that of the entry before it or
// the header's. So ls -t is the conversation's order.
func TestEntryTimes(t *testing.T) {
	a := newAgent(t)
	without := func(line string) string { return strings.Replace(line, `"timestamp":"2026`, `"was":"2026`, 1) }
	a.write("s", header("s"), without(entry(1, "e1", "", "x")), entry(2, "e2", "e1", "x"), without(entry(3, "e3", "e2", "x")),
		entry(9, "e4", "e3", "x"), entry(7, "e5", "e4", "x"))
	m := mountForTest(t, a.dir)
	require.Equal(t, "10:20:30.0000000000 11:00:02.0000000000 11:00:02.0000000000 11:00:09.0000000000 11:00:07.0000000000 ",
		run(t, "find", m.session("s", "entries"), "-name", "e*.json", "-printf", "%TT "))
	require.Equal(t, "e4.json e5.json", strings.Join(strings.Fields(run(t, "ls", "-t", m.session("s", "entries")))[:2], " "))
}

// TestModesMirror: modes and owners are those of the backing file throughout, but that a file which refuses writing
// says so.
func TestModesMirror(t *testing.T) {
	a := newAgent(t)
	for _, mode := range []os.FileMode{0o600, 0o640, 0o644, 0o664} {
		name := mode.String()[1:]
		a.write(name, header("s"), entry(0, "e0", "", "x"))
		require.NoError(t, os.Chmod(a.path(name+".jsonl"), mode))
	}
	require.NoError(t, os.Chmod(a.path(""), 0o700))
	require.NoError(t, os.Chmod(filepath.Join(a.dir, "sessions"), 0o710))
	m := mountForTest(t, a.dir)
	require.Equal(t, "600\n", run(t, "stat", "-c", "%a", m.path("new-session")), "for who may make directories in sessions/")
	for mode, dirMode := range map[string]string{"rw-------": "0700", "rw-r-----": "0750", "rw-r--r--": "0755", "rw-rw-r--": "0775"} {
		st, err := os.Stat(a.path(mode + ".jsonl"))
		require.NoError(t, err)
		owner := strconv.Itoa(int(st.Sys().(*syscall.Stat_t).Uid))
		control := fmt.Sprintf("0%o", st.Mode().Perm())
		other := fmt.Sprintf("0%o", st.Mode().Perm()&^0o222)
		modes := shell(t, `find "$1" ! -type l -printf '%y 0%m %U\n' | sort -u`, m.session(mode))
		require.Equal(t, "d "+dirMode+" "+owner+"\nf "+other+" "+owner+"\nf "+control+" "+owner+"\n", modes)
		require.Equal(t, other+"\n", run(t, "stat", "-c", "0%a", m.path("sessions/p", mode+".jsonl")))
	}
	require.Equal(t, "700\n", run(t, "stat", "-c", "%a", m.path("sessions/p")))
}

// TestModesTellTheTruth: a file has bits for writing where it can be opened for it, and no other has. Directories
// keep theirs, so that their copies can be removed; in a read-only mount nothing has any. Control files of archived
// sessions have them too: the refusal, which says what to do, would otherwise be the kernel's, which does not.
func TestModesTellTheTruth(t *testing.T) {
	a := demo(t)
	for name, mode := range map[string]os.FileMode{"sessions/script": 0o755, "blobs/x": 0o664} {
		require.NoError(t, os.WriteFile(filepath.Join(a, name), []byte("x"), mode))
		require.NoError(t, os.Chmod(filepath.Join(a, name), mode))
	}
	m := mountForTest(t, a)
	writable := python(t, program("modes.py"), m.dir)
	list := strings.Fields(writable)
	slices.Sort(list)
	require.Equal(t, []string{"append", "cwd", "fork", "labels", "new-session", "title"}, slices.Compact(list))
	require.Equal(t, "555 444\n", shell(t, `echo $(stat -c %a "$1/sessions/script" "$1/blobs/x")`, m.dir))
	run(t, "bash", "-c", `exec 3> "$1/title"; exec 3<> "$1/labels"; [ "$(stat -L -c %a /dev/fd/3)" = 644 ]`, "bash", m.path(demoSession))
	m.stop()
	m = mountForTest(t, a, func(c *mountConfig) { c.options.ReadOnly = true })
	require.Empty(t, run(t, "find", m.dir, "!", "-type", "l", "-perm", "/222"))
	require.Empty(t, run(t, "find", m.path(demoSession), "!", "-type", "l", "!", "-perm", "-444"))
}

// TestMountTable: df tells about the backing file system, the mount table about type and source, and
// there are no extended attributes.
func TestMountTable(t *testing.T) {
	a := demo(t)
	m := mountForTest(t, a)
	df := func(path string) string { // others write to the disk meanwhile
		return shell(t, `df --output=size,avail,itotal "$1" | awk 'NR > 1 { print $1, int($2 / 1048576), $3 }'`, path)
	}
	require.Equal(t, df(a), df(m.dir))
	require.Equal(t, df(a), df(m.path("sessions")))
	row := shell(t, `findmnt -rno FSTYPE,SOURCE,OPTIONS "$1"`, m.dir)
	require.True(t, strings.HasPrefix(row, "fuse.sessionfs "+a+" "), row)
	for _, option := range []string{"nosuid", "nodev", "default_permissions"} {
		require.Contains(t, row, option)
	}
	_, err := unix.Listxattr(m.path("sessions"), make([]byte, 100))
	require.True(t, err == nil || err == unix.ENOTSUP, "%v", err)
}

// TestNothingElseIsShown: of SOURCE only sessions, blobs and breadcrumbs, and none of the client's lock and
// temporary files.
func TestNothingElseIsShown(t *testing.T) {
	a := demo(t)
	for _, name := range []string{"auth.json", "agent.db", "settings.json", ".env", "config.yml"} {
		require.NoError(t, os.WriteFile(filepath.Join(a, name), []byte("SECRET"), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(a, "tools", "sessions"), 0o755))
	scope := filepath.Join(a, "sessions/-tmp-gauge-csv")
	hidden := []string{".X.jsonl.lock", ".X.jsonl.3fa9.tmp", "X.jsonl.3fa9.bak", ".2026.jsonl.00FF.tmp"}
	shownToo := []string{"X.jsonl.bak", ".X.lock", "notes.txt", ".hidden.jsonl", "X.jsonl.lock", ".X.jsonl.notes.tmp"}
	for _, name := range append(hidden, shownToo...) {
		require.NoError(t, os.WriteFile(filepath.Join(scope, name), []byte(header("x")), 0o600))
	}
	m := mountForTest(t, a)
	require.Equal(t, rootNames, names(t, m.dir))
	_, _, err := tool(t, "grep", "-r", "SECRET", m.dir)
	require.Error(t, err)
	list := names(t, m.path("sessions/-tmp-gauge-csv"))
	gone := []string{"auth.json", "agent.db", "history.db", "tools", ".env", "sessions/../auth.json"}
	for _, name := range hidden {
		require.NotContains(t, list, name)
		gone = append(gone, "sessions/-tmp-gauge-csv/"+name)
	}
	for _, name := range gone {
		absent(t, m.dir+"/"+name)
	}
	require.Subset(t, list, shownToo)
	require.NotContains(t, list, ".hidden", "the client lists no hidden sessions")
}

// TestArtifactPaths: what artifacts/ has is found, unlisted, in the session's directory, and fixed names
// win.
func TestArtifactPaths(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), entry(0, "e0", "", "x"))
	require.NoError(t, os.MkdirAll(a.path("s/deep/er"), 0o755))
	for name, content := range map[string]string{"3.bash.log": "output", "leaf": "trap", "title": "trap", "deep/er/f": "f",
		"Task.jsonl": header("t") + entry(0, "t0", "", "sub")} {
		require.NoError(t, os.WriteFile(a.path("s/"+name), []byte(content), 0o644))
	}
	m := mountForTest(t, a.dir)
	require.Equal(t, slices.Insert(slices.Clone(sessionNames), 1, "artifacts"), names(t, m.session("s")))
	for path, want := range map[string]string{
		"3.bash.log": "output", "artifacts/3.bash.log": "output", "deep/er/f": "f", "artifacts/Task/leaf": entry(0, "t0", "", "sub"),
		"Task/leaf":       entry(0, "t0", "", "sub"),
		"artifacts/title": "trap", "title": "",
	} {
		require.Equal(t, want, run(t, "cat", m.session("s", path)), path)
	}
	absent(t, m.session("s", "nothing"))
}
