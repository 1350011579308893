package fs_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Writing beside others: a live client, the lock, several mounts (docs/design.md section 4).

// companion is a child process that runs until it is told to end.
type companion struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	end   func()
}

// accompany starts a Python program that prints a line when it is ready, and then waits for its stdin to
// end.
func accompany(t testing.TB, program string, args ...string) *companion {
	t.Helper()
	c := &companion{t: t, cmd: exec.Command("python3", append([]string{"-c", program}, args...)...)}
	c.cmd.Stderr = os.Stderr
	var err error
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := c.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.cmd.Start())
	c.end = sync.OnceFunc(func() {
		_ = c.stdin.Close()
		_ = c.cmd.Wait()
	})
	t.Cleanup(c.end)
	c.out = bufio.NewReader(out)
	c.expect("ready\n")
	return c
}

// expect waits for a line that the program prints.
func (c *companion) expect(want string) {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	require.NoError(c.t, err)
	require.Equal(c.t, want, line)
}

// client holds a session file open as a live client does, which knows of no lock.
const client = `
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY|os.O_APPEND)
print("ready", flush=True)
sys.stdin.read()
`

// forkScript forks the session in the directory $1.
const forkScript = `echo e1 > "$1/fork"`

// everyWrite are all the kinds of writes to a session; $1 is its directory.
var everyWrite = map[string]string{
	"append":     `echo '{"type":"custom","customType":"x"}' > "$1/append"`,
	"python":     `python3 -c 'import sys; f = open(sys.argv[1] + "/append", "a"); f.write("{\"type\":\"custom\",\"customType\":\"x\"}\n"); f.close()' "$1"`,
	"labels":     `echo "e1 $RANDOM" > "$1/labels"`,
	"title":      `echo "title $RANDOM" > "$1/title"`,
	"leaf":       `ln -sfn "e1" "$1/leaf"`,
	"reset leaf": `ln -sfn tree "$1/leaf"`,
	"cp to leaf": `cd "$1" && cp -fPT branches/e0 leaf`,
	"mv -T leaf": `ln -s e2 "$1/new" && mv -T "$1/new" "$1/leaf"`,
}

// refusesEveryWrite: each fails with the errno's words and changes nothing on disk.
func (w *writing) refusesEveryWrite(words string) {
	w.t.Helper()
	before, list := w.raw("s"), listing(w.t, w.dir)
	for name, script := range everyWrite {
		_, problems, err := tool(w.t, "bash", "-c", script, "bash", w.in())
		require.Error(w.t, err, name)
		require.Contains(w.t, problems, words, name)
		w.unchanged(before, name)
	}
	require.Equal(w.t, list, listing(w.t, w.dir), "nothing is left behind")
	_ = os.Remove(w.in("new"))
}

// takesEveryWrite: each succeeds.
func (w *writing) takesEveryWrite() {
	w.t.Helper()
	for name, script := range everyWrite {
		_, problems, err := tool(w.t, "bash", "-c", script, "bash", w.in())
		require.NoError(w.t, err, "%s: %s", name, problems)
	}
	require.Empty(w.t, w.read("problems.jsonl"))
	list := records(w.t, w.raw("s"))
	require.GreaterOrEqual(w.t, len(list), 5+5)
}

// forks: a fork of e1 succeeds, and the session is as it was.
func (w *writing) forks() {
	w.t.Helper()
	before := w.raw("s")
	path := ask(w.t, w.in("fork"), "e1")
	require.Equal(w.t, "e0.json\ne1.json\n", run(w.t, "ls", w.m.path(strings.TrimSuffix(path, ".jsonl"), "entries")))
	w.unchanged(before, "a fork")
}

// refusesFork: a fork fails with the errno's words.
func (w *writing) refusesFork(words string) {
	w.t.Helper()
	_, problems, err := tool(w.t, "bash", "-c", forkScript, "bash", w.in())
	require.Error(w.t, err)
	require.Contains(w.t, problems, words)
}

// TestLiveClient: while a client holds the file open for writing, every write is EBUSY; when it closes,
// they work.
func TestLiveClient(t *testing.T) {
	w := newWriting(t)
	c := accompany(t, client, w.path("s.jsonl"))
	w.refusesEveryWrite("busy")
	require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
	require.Contains(t, w.read("last-error"), "append: ")
	require.Contains(t, w.read("last-error"), "busy")
	require.Contains(t, w.m.logged(), "errno=\"device or resource busy\"")
	require.Equal(t, writtenEntries[3], w.read("leaf"), "reading goes on")
	w.forks()
	c.end()
	w.takesEveryWrite()

	c = accompany(t, client, w.path("s.jsonl"))
	require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
	w.remount(func(c *mountConfig) { c.options.LiveAllow = true })
	w.takesEveryWrite()
	c.end()
	// A reader is no client, whatever reads, the mount itself included.
	f, err := os.Open(w.path("s.jsonl"))
	require.NoError(t, err)
	defer f.Close()
	g, err := os.Open(w.m.path("sessions/p/s.jsonl"))
	require.NoError(t, err)
	defer g.Close()
	w.remountBusy(g)
	w.takesEveryWrite()
}

// remountBusy lets go of a file in the mount first.
func (w *writing) remountBusy(f io.Closer) {
	require.NoError(w.t, f.Close())
	w.remount()
	g, err := os.Open(w.m.path("sessions/p/s.jsonl"))
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = g.Close() })
}

// TestLockHeld: a lock of a live process is waited for and then EBUSY; that of a dead one is removed.
func TestLockHeld(t *testing.T) {
	w := newWriting(t)
	lock := w.path(".s.jsonl.lock")
	require.NoError(t, os.WriteFile(lock, fmt.Appendf(nil, "%d:1700000000000\n", os.Getpid()), 0o600))
	w.refusesEveryWrite("busy")
	require.Contains(t, w.read("last-error"), fmt.Sprintf("held by process %d", os.Getpid()))
	require.Contains(t, w.read("last-error"), "remove "+lock)
	w.forks()
	require.FileExists(t, lock)
	require.NotContains(t, names(t, w.m.path("sessions/p")), ".s.jsonl.lock", "the lock is not shown")
	require.NoError(t, os.Remove(lock))
	w.takesEveryWrite()

	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	for name, script := range everyWrite {
		// The leaf is moved away: to move it to where it is takes no lock.
		require.NoError(t, put(w.in("append"), message("elsewhere")+"\n"))
		require.NoError(t, os.WriteFile(lock, fmt.Appendf(nil, "%d:1700000000000\n", dead.Process.Pid), 0o600))
		_, problems, err := tool(t, "bash", "-c", script, "bash", w.in())
		require.NoError(t, err, "%s: %s", name, problems)
		require.NoFileExists(t, lock)
	}

	// One that goes in time is waited for.
	c := accompany(t, `
import os, sys, time
fd = os.open(sys.argv[1], os.O_CREAT|os.O_EXCL|os.O_WRONLY, 0o600)
os.write(fd, b"%d:%d\n" % (os.getpid(), time.time() * 1000)); os.close(fd)
print("ready", flush=True)
time.sleep(0.15)
os.unlink(sys.argv[1])
sys.stdin.read()
`, lock)
	require.NoError(t, put(w.in("append"), message("waited")+"\n"))
	c.end()
}

// throughTheMount appends lines to append; a line that is refused as busy was not written, and is tried
// again.
const throughTheMount = `
import errno, os, sys
append, who, lines = sys.argv[1], sys.argv[2], int(sys.argv[3])
fd = os.open(append, os.O_RDWR)
busy = 0
for i in range(lines):
    line = ('{"type":"custom","customType":"x","id":"%s-%d","data":"%s"}\n' % (who, i, "x" * (i * 41 % 3000))).encode()
    while True:
        try:
            assert os.write(fd, line) == len(line)
            break
        except OSError as e:
            if e.errno != errno.EBUSY: raise
            busy += 1
    assert os.read(fd, 100).decode() == "%s-%d\n" % (who, i)
print("done", busy)
`

// followsTheGate appends lines to a session file under the outer lock, as clients from 18.4.9 on do. Its last argument is
// the name of the lock's socket.
const followsTheGate = `
import errno, os, socket, sys, time
raw, who, lines, name = sys.argv[1], sys.argv[2], int(sys.argv[3]), "\0omp-file-lock-" + sys.argv[4]
def take():
    start = time.time()
    while True:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            s.bind(name)
            return s
        except OSError as e:
            s.close()
            if e.errno != errno.EADDRINUSE: raise
        if time.time() - start > 60: raise SystemExit("no lock in a minute")
        time.sleep(0.002)
waited = 0
for i in range(lines):
    start = time.time()
    gate = take()
    waited += time.time() - start > 0.5
    fd = os.open(raw, os.O_WRONLY|os.O_APPEND)
    size = os.fstat(fd).st_size
    time.sleep(0.0002) # for others to write, if they do
    line = ('{"type":"custom","customType":"x","id":"%s-%d","parentId":null,"timestamp":"2026-02-16T11:00:00.000Z","data":"%s"}\n' % (who, i, "x" * (i * 37 % 3000))).encode()
    assert os.write(fd, line) == len(line)
    assert os.fstat(fd).st_size == size + len(line), "somebody wrote under our lock"
    os.close(fd)
    gate.close()
print("done", waited)
`

// socketOf is the part of the name of a lock's socket that is made of its path.
func socketOf(path string) string {
	hash := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(path)
		return d.Sum64()
	}
	return fmt.Sprintf("%016x%016x", hash(0x4f4d502d4c4f434b), hash(0x50492d46494c454c))
}

// TestTwoMountsAndAClient: two daemons and a process that follows the outer lock, as newer clients do, append 2,000 lines each
// to one session at once; all are there, whole, once. Package dir does it with the lock file.
func TestTwoMountsAndAClient(t *testing.T) {
	lines := sized(2_000, 100)
	w := newWriting(t)
	other := mountForTest(t, w.dir)
	before := w.raw("s")
	var all sync.WaitGroup
	for who, args := range map[string][]string{
		"one":    {throughTheMount, w.in("append")},
		"two":    {throughTheMount, other.session("s", "append")},
		"client": {followsTheGate, w.path("s.jsonl")},
	} {
		all.Go(func() {
			out, problems, err := tool(t, "python3", "-c", args[0], args[1], who, fmt.Sprint(lines), socketOf(w.path(".s.jsonl.lock.os")))
			if err != nil || !strings.HasPrefix(out, "done") {
				t.Errorf("%s: %v\n%s", who, err, problems)
			}
			t.Logf("%s: refused as busy and tried again, or waited for longer than a client does: %s", who, strings.TrimPrefix(out, "done "))
		})
	}
	all.Wait()
	require.False(t, t.Failed())
	added := w.added(before)
	require.Len(t, added, 3*lines)
	next := map[string]int{}
	for _, r := range added {
		who, _, _ := strings.Cut(r.ID, "-")
		require.Equal(t, fmt.Sprintf("%s-%d", who, next[who]), r.ID, "in order, once")
		next[who]++
	}
	require.Equal(t, map[string]int{"one": lines, "two": lines, "client": lines}, next)
	require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")))
	require.Equal(t, names(t, w.in("entries")), names(t, other.session("s", "entries")))
	require.Empty(t, w.read("problems.jsonl"))
}

// TestReadOnlyMount: with -o ro every write is EROFS.
func TestReadOnlyMount(t *testing.T) {
	w := newWriting(t, func(c *mountConfig) { c.options.ReadOnly = true })
	w.refusesEveryWrite("Read-only file system")
	w.refusesFork("Read-only file system")
	for _, file := range []string{w.in("append"), w.in("labels"), w.in("title"), w.in("fork"), w.m.path("new-session")} {
		for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_APPEND | unix.O_TRUNC} {
			fd, err := unix.Open(file, flags, 0)
			require.ErrorIs(t, err, syscall.EROFS, file)
			require.Less(t, fd, 0)
		}
	}
	require.ErrorIs(t, unix.Symlink("e1", w.in("x")), syscall.EROFS)
	require.ErrorIs(t, unix.Unlink(w.in("leaf")), syscall.EROFS)
	require.Equal(t, writtenEntries[3], w.read("leaf"))
}
