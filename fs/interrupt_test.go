package fs_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// waiter is a process that waits for a file system.
type waiter struct {
	*exec.Cmd
	t    *testing.T
	done chan struct{}
}

// startWaiter starts a program that is to wait for a file system. It is killed at the end of the test.
func startWaiter(t *testing.T, name string, args ...string) *waiter {
	t.Helper()
	w := &waiter{
		Cmd:  exec.Command(name, args...),
		t:    t,
		done: make(chan struct{}),
	}
	require.NoError(t, w.Start())
	go func() {
		defer close(w.done)
		_ = w.Wait()
	}()
	t.Cleanup(func() { _ = w.Process.Kill() })
	return w
}

// blocked waits until the process waits in a system call for the answer of a FUSE server.
func (w *waiter) blocked() {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		where, _ := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", w.Process.Pid))
		return strings.Contains(string(where), "request_wait")
	}, patience, 5*time.Millisecond, "%s does not wait for the mount", w.Cmd)
}

// soon is how long a program that is killed may take to be gone, on a busy machine. What it waits for takes several times
// as long.
const soon = 2 * time.Second

// kill kills the process; it must be gone soon.
func (w *waiter) kill() {
	w.t.Helper()
	require.NoError(w.t, w.Process.Kill())
	select {
	case <-w.done:
	case <-time.After(soon):
		w.t.Fatalf("%s is still there after it was killed", w.Cmd)
	}
}

// TestKilledReaders: whoever waits for long work of the daemon can be killed, also if the daemon does it for somebody else.
func TestKilledReaders(t *testing.T) {
	a := newAgent(t)
	lines := []string{header("x")}
	for n := range 2000 {
		line := entry(n, entryID(n), before(n, n-1), strings.Repeat("text ", 4000))
		lines = append(lines, strings.Replace(line, `"role":"user"`, `"role":"assistant","usage":{}`, 1)) // which usage.json reads too
	}
	a.write("x", lines...)
	for i := range 400 {
		a.write(fmt.Sprint("s", i), header(fmt.Sprint("s", i)))
	}
	quick := filepath.Join(a.dir, "quick")
	for indexed, files := range map[bool][]string{
		false: {"context.json", "leaf", "labels", "transcript.md", "header.json"},
		true:  {"context.json", "transcript.md", "usage.json", "secrets.jsonl", "search/y/results.tsv", "branches/current/transcript.md"},
	} {
		m := mountForTest(t, newLoopback(t, a.dir, slow).dir)
		commands := [][]string{
			{"cat", m.path("index.jsonl")},
			{"ls", m.path("recent")},
			{"cat", m.path("usage.jsonl")},
			{"cat", m.path("search/x/results.tsv")},
		}
		for _, f := range files {
			commands = append(commands, []string{"cat", m.session("x", f)})
		}
		if indexed {
			require.NoError(t, os.WriteFile(quick, nil, 0o600))
			run(t, "cat", m.session("x", "header.json"))
			require.NoError(t, os.Remove(quick))
		} else {
			commands = append(commands, []string{"ls", m.session("x", "entries")}, []string{"stat", "-L", m.session("x", "context.json")})
		}
		kill := func(w *waiter) {
			t.Helper()
			w.blocked()
			time.Sleep(50 * time.Millisecond)
			w.kill()
		}
		for _, c := range commands {
			kill(startWaiter(t, c[0], c[1:]...))
		}
		if indexed {
			works := startWaiter(t, "stat", m.session("x", "transcript.md"))
			works.blocked()
			kill(startWaiter(t, "cat", m.session("x", "branches/current/transcript.md")))
			kill(works)
		}
	}
}

// TestHostileReadersAreKilled: while a hostile file is indexed, which takes long, whoever waits for it can be killed, and
// others are served meanwhile and afterwards.
func TestHostileReadersAreKilled(t *testing.T) {
	a := newAgent(t)
	a.write("healthy", header("healthy"), entry(0, "e0", "", "well"))
	a.write("bad", header("bad"), strings.Repeat("{\"a\":\n", 3<<20))
	m := mountForTest(t, a.dir)
	for range 3 {
		var waiting []*waiter
		for name, tool := range map[string]string{
			"title":            "cat",
			"entries":          "ls",
			"context.json":     "stat",
			"transcript.md":    "cat",
			"tree":             "ls",
			"branches":         "ls",
			"labels":           "cat",
			"problems.jsonl":   "cat",
			"usage.json":       "stat",
			"branches.tsv":     "cat",
			"leaf":             "readlink",
			"by-label":         "ls",
			"branches/current": "readlink",
			"tree/x":           "ls",
		} {
			waiting = append(waiting, startWaiter(t, tool, m.session("bad", name)))
		}
		for _, w := range waiting {
			w.blocked()
		}
		require.Contains(t, run(t, "cat", m.session("healthy", "transcript.md")), "well")
		for _, w := range waiting {
			w.kill()
		}
	}
	require.NoError(t, put(m.session("healthy", "append"), message("more")+"\n"))
	require.Contains(t, run(t, "cat", m.session("healthy", "transcript.md")), "more")
}

// TestSourceComesBack: when the server of SOURCE's file system dies and another one shows SOURCE at the same place, the
// mount shows it too, though files and directories may have the numbers that they had before.
func TestSourceComesBack(t *testing.T) {
	a := newAgent(t)
	a.write("x", header("x"), entry(0, "e0", "", "hello"))
	l := newLoopback(t, a.dir, plainly)
	m := mountForTest(t, l.dir)
	show := []string{m.session("x", "entries/e0.json"), m.session("x", "transcript.md"), m.path("sessions/p/x.jsonl"), m.path("index.jsonl")}
	want := run(t, "cat", show...)
	for range 3 {
		require.NoError(t, l.cmd.Process.Kill())
		<-l.ended
		for _, path := range []string{"sessions/p/x/leaf", "sessions/p/x/transcript.md", "index.jsonl", "recent", "history"} {
			_, _, _ = tool(t, "ls", "-L", m.path(path)) // fails, or shows what the kernel knows
		}
		require.NoError(t, detach(l.dir))
		l = loopbackConfig{From: a.dir, To: l.dir}.mount(t)
		var got string
		require.Eventually(t, func() bool {
			got, _, _ = tool(t, "cat", show...)
			return got == want
		}, patience, 50*time.Millisecond, "%s", &got)
		require.NoError(t, put(m.session("x", "append"), message("more")+"\n"))
		want = run(t, "cat", show...)
	}
}
