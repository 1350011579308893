package fs_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Writing beside others: a live client, the lock, several mounts (docs/design.md section 4).

// companion is a child process that runs until it is told to end.
type companion struct {
	t     testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	ended chan struct{}
}

// begin starts a program that prints "ready" when it is, and ends with its stdin. It returns the first line, or all that a
// program says that does not get there.
func begin(t testing.TB, cmd *exec.Cmd) (c *companion, said string) {
	t.Helper()
	c = &companion{t: t, cmd: cmd, ended: make(chan struct{})}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	stdin, err := cmd.StdinPipe()
	c.stdin = stdin
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c.out = bufio.NewReader(out)
	said, _ = c.out.ReadString('\n') // an end of the output too
	if said != "ready\n" {
		rest, _ := io.ReadAll(c.out)
		said += string(rest)
	}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	return c, said
}

// end closes the program's stdin and waits for its end.
func (c *companion) end() {
	_ = c.cmd.Process.Signal(syscall.SIGCONT) // where it was stopped
	_ = c.stdin.Close()
	<-c.ended
}

// accompany starts a Python program as a companion.
func accompany(t testing.TB, program string, args ...string) *companion {
	t.Helper()
	c, said := begin(t, exec.Command("python3", append([]string{"-c", program}, args...)...))
	t.Cleanup(c.end)
	require.Equal(t, "ready\n", said)
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

// resume starts a client on a session: a process with a terminal of its own, which has the databases of the agent directory open,
// and writes a breadcrumb. A line on its stdin is another session to go to. It returns its terminal's id and its process too.
func (a agent) resume(session string) (c *companion, terminal string, pid int) {
	a.t.Helper()
	who := filepath.Join(a.t.TempDir(), "who")
	c = accompany(a.t, program(a.t, "at_terminal.py"), a.dir, a.path(session+".jsonl"), who)
	text, err := os.ReadFile(who)
	require.NoError(a.t, err)
	terminal, number, _ := strings.Cut(string(text), " ")
	pid, err = strconv.Atoi(number)
	require.NoError(a.t, err)
	return c, terminal, pid
}

// withLease stands for a client from 18.4.9 on: it holds the lease whose socket's name is its argument. Its first line is
// "ready".
const withLease = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("\0omp-file-lock-" + sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
`

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

// refusesEveryWrite requires of everyWrite, all at once, that each fails with the errno's words and changes nothing on
// disk. Those that replace leaf, which some tools do in two steps, take turns.
func (w *writing) refusesEveryWrite(words string) {
	w.t.Helper()
	before := w.raw("s")
	list := listing(w.t, w.dir)
	var all sync.WaitGroup
	var leaf sync.Mutex
	for name, script := range everyWrite {
		all.Go(func() {
			if strings.Contains(name, "leaf") {
				leaf.Lock()
				defer leaf.Unlock()
			}
			_, problems, err := tool(w.t, "bash", "-c", script, "bash", w.in())
			assert.Error(w.t, err, name)
			assert.Contains(w.t, problems, words, name)
		})
	}
	all.Wait()
	require.Equal(w.t, before, w.raw("s"), words)
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
	require.Equal(w.t, before, w.raw("s"))
}

// hindrances are those whom every write waits for in vain: how one begins, what last-error says then, and what owner shows.
var hindrances = map[string]func(w *writing) (end func(), said []string, seen string){
	"a client with the file open": func(w *writing) (func(), []string, string) {
		c := accompany(w.t, client, w.path("s.jsonl"))
		return c.end, []string{fmt.Sprintf("process %d ", c.cmd.Process.Pid), "fork", "live=allow"}, fmt.Sprint("descriptor ", c.cmd.Process.Pid, " null")
	},
	"a client at a terminal": func(w *writing) (func(), []string, string) {
		c, terminal, pid := w.resume("s")
		return c.end, []string{fmt.Sprintf("process %d ", pid), strconv.Quote(terminal), "fork", "live=allow"}, fmt.Sprint("breadcrumb ", pid, " ", terminal)
	},
	"a client with the lease": func(w *writing) (func(), []string, string) {
		c := accompany(w.t, withLease, socketOf(filepath.Join(os.Getenv("XDG_STATE_HOME"), "omp/run/session-owners/s.lock")))
		return c.end, []string{"holds its lease"}, fmt.Sprint("lease ", c.cmd.Process.Pid, " null")
	},
	"a lock": func(w *writing) (func(), []string, string) {
		lock := w.path(".s.jsonl.lock")
		require.NoError(w.t, os.WriteFile(lock, fmt.Appendf(nil, "%d:1700000000000\n", os.Getpid()), 0o600))
		return func() {
			require.NotContains(w.t, names(w.t, w.m.path("sessions/p")), ".s.jsonl.lock", "the lock is not shown")
			require.NoError(w.t, os.Remove(lock))
		}, []string{fmt.Sprintf("held by process %d", os.Getpid()), "remove " + lock}, ""
	},
}

// TestBesideOthers: while somebody has the session, every write is EBUSY, last-error names him and the ways out, and owner
// shows him; a fork works. When he has gone, writes work. Package writer does it with each kind of client and of write.
func TestBesideOthers(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	w := newWriting(t)
	require.NotContains(t, names(t, w.in()), "owner")
	require.Error(t, put(w.in("owner"), "x"))
	owner := func() string {
		require.Equal(t, run(t, "stat", "-c", "%s", w.in("owner")), shell(t, `wc -c < "$1"`, w.in("owner")))
		return strings.TrimSpace(run(t, "jq", "-r", `"\(.seen) \(.pid) \(.terminal)"`, w.in("owner")))
	}
	require.Empty(t, owner())
	for name, begin := range hindrances {
		t.Run(name, func(t *testing.T) {
			end, said, seen := begin(w)
			require.Equal(t, seen, owner())
			w.refusesEveryWrite("busy")
			require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
			for _, part := range append(said, "append: ", "busy") {
				require.Contains(t, w.read("last-error"), part)
			}
			raw := strings.TrimSuffix(w.raw("s"), "\n")
			lastLine := raw[strings.LastIndexByte(raw, '\n')+1:] + "\n"
			require.Equal(t, lastLine, w.read("leaf"), "reading goes on")
			w.forks()
			end()
			require.Empty(t, owner())
			require.NoError(t, put(w.in("append"), message(name)+"\n"))
		})
	}
	require.Contains(t, w.m.logged(), "errno=\"device or resource busy\"")

	w.remount(func(o *daemonOptions) { o.LiveAllow = true })
	holds := accompany(t, client, w.path("s.jsonl"))
	require.NoError(t, put(w.in("append"), message("beside")+"\n"))
	require.ErrorIs(t, put(w.in("title"), "the client would go on in the old file\n"), syscall.EBUSY)
	require.Contains(t, w.read("last-error"), "a program has p/s.jsonl open for writing")
	holds.end()
	w.takesEveryWrite()
	w.remount(func(o *daemonOptions) { o.Redact = true })
	require.NoFileExists(t, w.in("owner"))
}

// TestRunning: running/ has the sessions that agents have open, by their names, and nothing else.
func TestRunning(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	w := newWriting(t)
	w.write("u", strings.Replace(header("u"), "{", `{"title":"Tides",`, 1), writtenEntries[0])
	w.write("v", strings.Replace(header("v"), "{", `{"title":"Tides",`, 1), writtenEntries[0])
	running := func() string { return run(t, "find", w.m.path("running"), "-mindepth", "1", "-printf", `%f -> %l\n`) }
	require.Empty(t, running())
	other, _, _ := w.resume("t") // which is not there
	leased := accompany(t, withLease, socketOf(filepath.Join(os.Getenv("XDG_STATE_HOME"), "omp/run/session-owners/u.lock")))
	require.Equal(t, "Tides -> ../sessions/p/u\n", running())
	_, err := fmt.Fprintln(other.stdin, w.path("v.jsonl"))
	require.NoError(t, err)
	other.expect("gone\n")
	require.Equal(t, "Tides -> ../sessions/p/u\nTides v -> ../sessions/p/v\n", running())
	leased.end()
	require.Equal(t, "Tides -> ../sessions/p/v\n", running())
	other.end()
	require.Eventually(t, func() bool { return running() == "" }, time.Minute, 100*time.Millisecond, "one look at processes serves for a second")
	require.ErrorIs(t, os.WriteFile(w.m.path("running/x"), nil, 0o600), syscall.EPERM)
	w.remount(func(o *daemonOptions) { o.Redact = true })
	require.NoDirExists(t, w.m.path("running"))
}

// socketOf is the part of the name of a lock's socket that is made of its path.
func socketOf(path string) string {
	hash := func(seed uint64) uint64 {
		d := xxhash.NewWithSeed(seed)
		_, _ = d.WriteString(path)
		return d.Sum64()
	}
	return fmt.Sprintf("%016x%016x", hash(0x4f4d502d4c4f434b), hash(0x50492d46494c454c))
}

// appendAtOnce has programs append so many lines each to files of the session s, all at once; all lines are there, whole, once,
// and each of ours hangs under the one before. A program that gets the session file itself follows the outer lock, as newer
// clients do. It returns the last id.
func (w *writing) appendAtOnce(files map[string]string, lines func(who string) int) (last string) {
	before := w.raw("s")
	var all sync.WaitGroup
	want := map[string]int{}
	for who, file := range files {
		name := "through_the_mount.py" // which tries a line again that is refused as busy, as it was not written
		if file == w.path("s.jsonl") {
			name = "follows_the_gate.py"
		}
		want[who] = lines(who)
		all.Go(func() {
			out, problems, err := tool(w.t, "python3", "-c", program(w.t, name), file, who, fmt.Sprint(lines(who)), socketOf(w.path(".s.jsonl.lock.os")))
			if err != nil || !strings.HasPrefix(out, "done") {
				w.t.Errorf("%s: %v\n%s", who, err, problems)
			}
			w.t.Logf("%s: refused as busy and tried again, or waited for longer than a client does: %s", who, strings.TrimPrefix(out, "done "))
		})
	}
	all.Wait()
	require.False(w.t, w.t.Failed())
	next := map[string]int{}
	last = "e3"
	for _, r := range w.added(before) {
		who, _, _ := strings.Cut(r.ID, "-")
		require.Equal(w.t, fmt.Sprintf("%s-%d", who, next[who]), r.ID, "in order, once")
		if files[who] != w.path("s.jsonl") {
			require.Equal(w.t, last, r.parent(), "each hangs under the one before")
		}
		next[who]++
		last = r.ID
	}
	require.Equal(w.t, want, next)
	return last
}

// TestTwoMountsAndAClient: four programs append in one mount, one in another, and one to the file. Package dir does it with the
// lock file.
func TestTwoMountsAndAClient(t *testing.T) {
	w := newWriting(t)
	other := mountForTest(t, w.dir)
	last := w.appendAtOnce(map[string]string{
		"one":    w.in("append"),
		"two":    other.session("s", "append"),
		"client": w.path("s.jsonl"),
		"three":  w.in("append"),
		"four":   w.in("append"),
		"five":   w.in("append"),
	}, func(who string) int {
		if strings.HasPrefix(who, "f") || who == "three" {
			return sized(500, 25)
		}
		return sized(2_000, 100)
	})
	require.Equal(t, "entries/"+last+".json", readLink(t, w.in("leaf")))
	require.Equal(t, "s.jsonl\n", run(t, "ls", "-A", w.path("")), "no lock is left")
	require.Equal(t, names(t, w.in("entries")), names(t, other.session("s", "entries")))
	require.Empty(t, w.read("problems.jsonl"))
}

// TestSharedMounts: two daemons write to one session, each through a file system of its own whose kernel remembers an
// older state of the file.
func TestSharedMounts(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	w := &writing{a, mountForTest(t, newLoopback(t, a.dir, remembers).dir)}
	other := mountForTest(t, newLoopback(t, a.dir, remembers).dir)
	w.appendAtOnce(map[string]string{"one": w.in("append"), "two": other.session("s", "append")}, func(string) int { return 60 })
	a.add("s", entry(9, "seen", "e3", "another machine's"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(w.in("entries/seen.json"))
		return err == nil
	}, patience, 10*time.Millisecond)
}
