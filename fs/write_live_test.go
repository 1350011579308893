package fs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Writing beside a live client that holds no descriptor on its session (docs/design.md section 4): one that was resumed
// and has written nothing, or that has just answered.

// atTerminal stands for a client: a process with a terminal of its own, which has the agent directory's
// databases open and writes a breadcrumb that names a session. A line on stdin is another session to go to. Its
// first line is its terminal and its number.
const atTerminal = `
import os, pty, signal, sys
agent, session = sys.argv[1:3]
ready, tell = os.pipe()
pid, master = pty.fork()
if pid == 0:
    held = [os.open(os.path.join(agent, name + ending), os.O_RDWR|os.O_CREAT, 0o600)
            for name in ("agent.db", "models.db", "history.db") for ending in ("", "-wal", "-shm")]
    os.write(tell, os.ttyname(0).encode() + b"\n")
    signal.pause()
terminal = os.fdopen(ready).readline().strip()[5:].replace("/", "-")
crumbs = os.path.join(agent, "terminal-sessions")
os.makedirs(crumbs, exist_ok=True)
def go_to(session):
    with open(os.path.join(crumbs, terminal), "w") as f: f.write("/home/dev/project\n%s\ncwdstat 1 2\n" % session)
go_to(session)
with open(sys.argv[3], "w") as f: f.write("%s %d" % (terminal, pid))
print("ready", flush=True)
for line in sys.stdin:
    go_to(line.strip())
    print("gone", flush=True)
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
`

// resume starts a client on a session, and returns its terminal's id and its process.
func (a agent) resume(session string) (c *companion, terminal string, pid int) {
	a.t.Helper()
	who := filepath.Join(a.t.TempDir(), "who")
	c = accompany(a.t, atTerminal, a.dir, a.path(session+".jsonl"), who)
	text, err := os.ReadFile(who)
	require.NoError(a.t, err)
	terminal, number, _ := strings.Cut(string(text), " ")
	pid, err = strconv.Atoi(number)
	require.NoError(a.t, err)
	return c, terminal, pid
}

// TestLiveClientAtTerminal: every kind of write is EBUSY, and last-error names the process and the ways out. A fork
// works; so do all writes to another session, and to this one as soon as the client has ended or has gone to
// another one.
func TestLiveClientAtTerminal(t *testing.T) {
	w := newWriting(t)
	w.write("t", header("t"), strings.Join(writtenEntries, ""))
	sub := w.path("s/sub.jsonl")
	require.NoError(t, os.Mkdir(w.path("s"), 0o755))
	require.NoError(t, os.WriteFile(sub, []byte(header("sub")+strings.Join(writtenEntries, "")), 0o644))
	c, terminal, pid := w.resume("s")

	before, names := w.raw("s"), listing(t, w.dir)
	for what, script := range everyWrite {
		_, problems, err := tool(t, "bash", "-c", script, "bash", w.in())
		require.Error(t, err, what)
		require.Contains(t, problems, "busy", what)
		for _, part := range []string{fmt.Sprintf("process %d ", pid), strconv.Quote(terminal), "fork", "live=allow"} {
			require.Contains(t, w.read("last-error"), part, what)
		}
		w.unchanged(before, what)
	}
	require.Equal(t, names, listing(t, w.dir), "nothing is left behind")
	_ = os.Remove(w.in("new"))
	require.Contains(t, w.m.logged(), fmt.Sprintf("process %d ", pid))
	require.ErrorIs(t, put(w.in("artifacts/sub/append"), message("x")+"\n"), syscall.EBUSY, "a subagent's session is the client's too")
	w.forks()
	require.NoError(t, put(w.m.session("t", "append"), message("x")+"\n"))

	_, err := fmt.Fprintln(c.stdin, w.path("t.jsonl"))
	require.NoError(t, err)
	c.expect("gone\n")
	require.ErrorIs(t, put(w.m.session("t", "append"), message("x")+"\n"), syscall.EBUSY)
	w.takesEveryWrite()
	require.NoError(t, put(w.in("artifacts/sub/append"), message("x")+"\n"))

	c.end()
	require.NoError(t, put(w.m.session("t", "append"), message("x")+"\n"))
	c, _, _ = w.resume("s")
	require.ErrorIs(t, put(w.in("append"), message("x")+"\n"), syscall.EBUSY)
	w.remount(func(c *mountConfig) { c.options.LiveAllow = true })
	w.takesEveryWrite()
	c.end()
}
