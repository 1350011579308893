package clients

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
	"sessionfs/sessioncore/storage"
)

// agentDir is an agent directory with the Clients for it.
type agentDir struct {
	*clienttest.Agent
	t       testing.TB
	clients *Clients
}

// newAgentDir returns an agent directory without clients. It skips the test where they cannot be detected.
func newAgentDir(t testing.TB) *agentDir {
	t.Helper()
	a := clienttest.NewAgent(t)
	clients := New(a.Root, a.Terminals)
	if clients.databases() != storage.WritersNone {
		t.Skip("live clients cannot be seen here: no leases")
	}
	return &agentDir{a, t, clients}
}

// requireNone requires that no client has these sessions open.
func (a *agentDir) requireNone(names ...string) {
	a.t.Helper()
	for _, name := range names {
		live := a.clients.On(a.Sessions, name)
		if live != nil {
			a.t.Fatalf("%s: %v", name, live)
		}
	}
}

// requireClient requires that a process, 0 for one that cannot be seen, has these sessions open by the breadcrumb of a
// terminal.
func (a *agentDir) requireClient(pid int, terminal string, names ...string) {
	a.t.Helper()
	for _, name := range names {
		live := a.clients.On(a.Sessions, name)
		require.NotNil(a.t, live, name)
		require.Equal(a.t, name, live.Session)
		require.Equal(a.t, SignTerminal, live.Sign)
		require.Equal(a.t, terminal, live.Terminal)
		found, command := live.Process()
		require.Equal(a.t, pid, found)
		require.Equal(a.t, pid != 0, command != "")
	}
}

// TestClientAtTerminal: a client without a descriptor on its session is found by the breadcrumb of its terminal.
func TestClientAtTerminal(t *testing.T) {
	a := newAgentDir(t)
	for i, database := range databaseNames {
		t.Run(database, func(t *testing.T) {
			tty, id := clienttest.Terminal(t)
			a.Crumb(id, "p/s.jsonl")
			a.requireNone("p/s.jsonl") // the client that wrote it has ended
			pid, end := clienttest.Imitation{Stdin: tty, Control: tty, Files: []string{a.Database(database)}}.Start(t)
			a.requireClient(pid, id, "p/s.jsonl", "p/s/sub.jsonl")
			a.requireNone("p/other.jsonl", "p/other/sub.jsonl")

			a.Crumb(id, "p/other.jsonl") // it switched to another session
			a.requireNone("p/s.jsonl", "p/s/sub.jsonl")
			a.requireClient(pid, id, "p/other.jsonl")
			require.Equal(t, []string{filepath.Join(a.Path, "sessions/p/other.jsonl")}, a.clients.Named())
			a.Crumb(id, "p/s/sub.jsonl") // older versions name subagents' sessions
			a.requireClient(pid, id, "p/s.jsonl", "p/s/sub.jsonl")

			end()
			a.requireNone("p/s.jsonl", "p/s/sub.jsonl", "p/other.jsonl")
			require.NoError(t, os.Remove(filepath.Join(a.Path, "terminal-sessions", id)), i)
		})
	}
}

// TestClientComesBack: an earlier scan is not reused when a client comes back to the session.
func TestClientComesBack(t *testing.T) {
	a := newAgentDir(t)
	tty, id := clienttest.Terminal(t)
	other, otherID := clienttest.Terminal(t)
	a.Crumb(otherID, "p/other.jsonl")
	clienttest.Imitation{Stdin: other, Control: other, Files: []string{a.Database("agent.db")}}.Start(t)
	for range 5 {
		a.Crumb(id, "p/s.jsonl")
		time.Sleep(40 * time.Millisecond)
		a.requireNone("p/s.jsonl")
		searched := a.clients.scan.at
		a.requireNone("p/s.jsonl")
		require.Equal(t, searched, a.clients.scan.at, "remembered")
		pid, end := clienttest.Imitation{Stdin: tty, Control: tty, Files: []string{a.Database("agent.db")}}.Start(t)
		a.Crumb(id, "p/s.jsonl")
		a.requireClient(pid, id, "p/s.jsonl")
		end()
		a.requireNone("p/s.jsonl")
	}
}

// TestClientWithoutTerminalPath: a client whose stdin is not a terminal derives the name of its breadcrumb from its
// environment, or by a rule that we do not know.
func TestClientWithoutTerminalPath(t *testing.T) {
	databases := func(a *agentDir) []string { return []string{a.Database("agent.db"), a.Database("history.db")} }
	// start starts a client without a terminal, but with variables that a terminal program sets.
	start := func(t *testing.T, a *agentDir, variables ...string) (pid int, end func()) {
		return clienttest.Imitation{Env: variables, Files: databases(a)}.Start(t)
	}
	t.Run("environment", func(t *testing.T) {
		a := newAgentDir(t)
		a.Crumb("tmux-%7", "p/s.jsonl")
		a.Crumb("zellij-my-work-3", "p/other.jsonl")
		_, end := start(t, a, "TMUX_PANE=%8")
		a.requireNone("p/s.jsonl")
		end()
		pid, end := start(t, a, "TMUX_PANE=%7")
		a.Crumb("tmux-%7", "p/s.jsonl")
		a.requireClient(pid, "tmux-%7", "p/s.jsonl")
		end()
		pid, _ = start(t, a, "ZELLIJ_PANE_ID=3", "ZELLIJ_SESSION_NAME=my/work")
		a.Crumb("zellij-my-work-3", "p/other.jsonl")
		a.requireClient(pid, "zellij-my-work-3", "p/other.jsonl")
		a.requireNone("p/s.jsonl")
	})
	t.Run("unknown", func(t *testing.T) {
		a := newAgentDir(t)
		tty, id := clienttest.Terminal(t)
		a.Crumb("future-1", "p/s.jsonl")
		a.Crumb(id, "p/other.jsonl")
		clienttest.Imitation{Stdin: tty, Control: tty, Files: databases(a)}.Start(t)
		a.requireNone("p/s.jsonl") // it is the one of p/other.jsonl
		pid, _ := clienttest.Imitation{Files: databases(a)}.Start(t)
		a.Crumb("future-1", "p/s.jsonl")
		a.requireClient(pid, "future-1", "p/s.jsonl")
	})
	t.Run("unseen", func(t *testing.T) {
		a := newAgentDir(t)
		a.clients.proc = t.TempDir() // as from within a container
		a.Crumb("pts-0", "p/s.jsonl")
		a.requireNone("p/s.jsonl")
		_, end := clienttest.Imitation{Files: databases(a)}.Start(t)
		a.requireClient(0, "pts-0", "p/s.jsonl")
		a.requireNone("p/other.jsonl")
		end()
		a.requireNone("p/s.jsonl")
	})
}

// TestClientNamesByOtherPath: the path in the breadcrumb may lead to the session through a link, or have the former
// name of its directory.
func TestClientNamesByOtherPath(t *testing.T) {
	const name = "2026-02-16T10-20-30-000Z_0123456789abcdef.jsonl"
	for _, test := range []struct {
		file, family string
		want         bool
	}{
		{"/home/dev/.omp/agent/sessions/p/s.jsonl", "p/s.jsonl", true},
		{"/mnt/x/p/s.jsonl", "p/s.jsonl", true},
		{"/home/dev/.omp/agent/sessions/q/s.jsonl", "p/s.jsonl", false},
		{"/home/dev/.omp/agent/sessions/xp/s.jsonl", "p/s.jsonl", false},
		{"/home/dev/.omp/agent/sessions/p/s/a/b.jsonl", "p/s.jsonl", true},
		{"/home/dev/.omp/agent/sessions/p/s-2/b.jsonl", "p/s.jsonl", false},
		{"/home/dev/.omp/agent/sessions/--old--/" + name, "-new/" + name, true},
		{"/home/dev/x.jsonl", "home.jsonl", false},
		{"/sessions/home.jsonl", "home.jsonl", true},
		{"", "p/s.jsonl", false},
	} {
		crumb := breadcrumb{session: storage.Cached[string]{Value: test.file}}
		require.Equal(t, test.want, crumb.names(test.family), "%s %s", test.file, test.family)
	}
}

// TestChild is not a test: it is the main function of the child process.
func TestChild(*testing.T) {
	childtest.Run(map[string]func(args []string) error{"client": clienttest.Child})
}

// TestTerminalIDs: the terminal ids of a process, from its files in /proc.
func TestTerminalIDs(t *testing.T) {
	for _, test := range []struct {
		name, stdin, environ string
		want                 []string
		known                bool
	}{
		{"pseudo terminal", "/dev/pts/3", "TMUX_PANE=%1\x00", []string{"pts-3"}, true},
		{"console", "/dev/tty2", "", []string{"tty2"}, true},
		{"pipe", "pipe:[1]", "A=b\x00KITTY_WINDOW_ID=5\x00TERM_SESSION_ID=\x00WT_SESSION=x=y\x00", []string{"kitty-5", "wt-x=y"}, true},
		{"zellij", "pipe:[1]", "ZELLIJ_PANE_ID=5\x00", []string{"zellij-5"}, true},
		{"nothing", "/dev/null", "", nil, true},
		{"no environment", "/dev/null", "none", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "fd"), 0o700))
			require.NoError(t, os.Symlink(test.stdin, filepath.Join(dir, "fd", "0")))
			if test.environ != "none" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, "environ"), []byte(test.environ), 0o600))
			}
			ids, known := terminalIDs(dir)
			require.Equal(t, test.want, ids)
			require.Equal(t, test.known, known)
		})
	}
	ids, _ := terminalIDs(t.TempDir())
	require.Empty(t, ids, "a process that is gone")
}
