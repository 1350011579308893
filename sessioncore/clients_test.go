package sessioncore

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/dir/dirtest"
)

// agentDir is an agent directory with a session, and what knows of its clients.
type agentDir struct {
	t        testing.TB
	dir      string
	sessions *dir.Storage
	clients  *Clients
}

func newAgentDir(t testing.TB) *agentDir {
	t.Helper()
	a := &agentDir{t: t, dir: t.TempDir()}
	for _, name := range []string{"sessions/p/s", "sessions/p/other", "terminal-sessions"} {
		require.NoError(t, os.MkdirAll(filepath.Join(a.dir, name), 0o700))
	}
	for _, name := range databaseNames {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, name), nil, 0o600))
	}
	for _, name := range []string{"p/s.jsonl", "p/s/sub.jsonl", "p/other.jsonl", "p/other/sub.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(a.dir, "sessions", name), []byte(plainFile), 0o600))
	}
	open := func(name string) *dir.Storage {
		s, err := dir.Open(filepath.Join(a.dir, name))
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	a.sessions = open("sessions")
	a.clients = NewClients(open(""), open("terminal-sessions"))
	t.Cleanup(a.clients.Close)
	if a.clients.databases.used() != storage.WritersNone {
		t.Skip("live clients cannot be seen here: no leases")
	}
	return a
}

func (a *agentDir) database(name string) string { return filepath.Join(a.dir, name) }

// crumb writes a breadcrumb in place, as a client does.
func (a *agentDir) crumb(terminal, session string) {
	a.t.Helper()
	text := fmt.Sprintf("/w\n%s/sessions/%s\ncwdstat 1 2\n", a.dir, session)
	require.NoError(a.t, os.WriteFile(filepath.Join(a.dir, "terminal-sessions", terminal), []byte(text), 0o600))
}

// nobodyOn: no client is on these sessions.
func (a *agentDir) nobodyOn(names ...string) {
	a.t.Helper()
	for _, name := range names {
		if live := a.clients.On(a.sessions, name); live != nil {
			a.t.Fatalf("%s: %v", name, live)
		}
	}
}

// somebodyOn: this process is on these sessions.
func (a *agentDir) somebodyOn(pid int, terminal string, names ...string) {
	a.t.Helper()
	for _, name := range names {
		live := a.clients.On(a.sessions, name)
		require.NotNil(a.t, live, name)
		require.Equal(a.t, LiveError{name, SignTerminal, pid, live.Command, terminal}, *live)
		require.Equal(a.t, pid != 0, live.Command != "")
	}
}

// terminal is a pseudo terminal, and its id.
func terminal(t *testing.T) (tty *os.File, id string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tty.Close() })
	return tty, fmt.Sprintf("pts-%d", n)
}

// imitation is a process that stands for a client.
type imitation struct {
	stdin   *os.File // nil: nothing
	control *os.File // the controlling terminal; nil: none
	env     []string
	files   []string // held open for writing
}

// start starts it; end kills it.
func (c imitation) start(t testing.TB) (pid int, end func()) {
	t.Helper()
	cmd := childtest.Command(t, "client", c.files...)
	for _, v := range terminalVariables {
		cmd.Env = append(cmd.Env, v.name+"=")
	}
	cmd.Env = append(cmd.Env, c.env...)
	life, mine, err := os.Pipe()
	require.NoError(t, err)
	defer life.Close()
	cmd.ExtraFiles = []*os.File{life}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.stdin != nil {
		cmd.Stdin = c.stdin
	}
	if c.control != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.control)
		cmd.SysProcAttr.Setctty, cmd.SysProcAttr.Ctty = true, 4
	}
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end = sync.OnceFunc(func() {
		_ = mine.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	t.Cleanup(end)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd.Process.Pid, end
}

// childClient FILE…: holds the files open for writing for as long as the test lives.
func childClient(args []string) error {
	for _, name := range args {
		if name == "" {
			continue
		}
		if _, err := os.OpenFile(name, os.O_RDWR, 0); err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.NewFile(3, "life"))
	return err
}

// TestClientAtTerminal: a client holds no descriptor on its session; the breadcrumb of its terminal tells.
func TestClientAtTerminal(t *testing.T) {
	a := newAgentDir(t)
	for i, database := range databaseNames {
		t.Run(database, func(t *testing.T) {
			tty, id := terminal(t)
			a.crumb(id, "p/s.jsonl")
			a.nobodyOn("p/s.jsonl") // the client that wrote it has ended
			pid, end := imitation{stdin: tty, control: tty, files: []string{a.database(database)}}.start(t)
			a.somebodyOn(pid, id, "p/s.jsonl", "p/s/sub.jsonl")
			a.nobodyOn("p/other.jsonl", "p/other/sub.jsonl")

			a.crumb(id, "p/other.jsonl") // it switched to another session
			a.nobodyOn("p/s.jsonl", "p/s/sub.jsonl")
			a.somebodyOn(pid, id, "p/other.jsonl")
			a.crumb(id, "p/s/sub.jsonl") // older versions name subagents' sessions
			a.somebodyOn(pid, id, "p/s.jsonl", "p/s/sub.jsonl")

			end()
			a.nobodyOn("p/s.jsonl", "p/s/sub.jsonl", "p/other.jsonl")
			require.NoError(t, os.Remove(filepath.Join(a.dir, "terminal-sessions", id)), i)
		})
	}
}

// TestClientElsewhere: a session that somebody left, and a client on another one.
func TestClientElsewhere(t *testing.T) {
	a := newAgentDir(t)
	tty, id := terminal(t)
	left, leftID := terminal(t)
	a.crumb(id, "p/other.jsonl")
	a.crumb(leftID, "p/s.jsonl")
	imitation{stdin: left, control: left}.start(t) // a shell, say
	pid, _ := imitation{stdin: tty, control: tty, files: []string{a.database("agent.db")}}.start(t)
	a.nobodyOn("p/s.jsonl")
	a.somebodyOn(pid, id, "p/other.jsonl")
	reader, err := os.Open(a.database("history.db"))
	require.NoError(t, err)
	defer reader.Close()
	a.nobodyOn("p/s.jsonl")
}

// TestClientComesBack: what was found out once is not believed when a client comes back to the session.
func TestClientComesBack(t *testing.T) {
	a := newAgentDir(t)
	tty, id := terminal(t)
	other, otherID := terminal(t)
	a.crumb(otherID, "p/other.jsonl")
	imitation{stdin: other, control: other, files: []string{a.database("agent.db")}}.start(t)
	for range 5 {
		a.crumb(id, "p/s.jsonl")
		time.Sleep(40 * time.Millisecond)
		a.nobodyOn("p/s.jsonl")
		searched := a.clients.scan.at
		a.nobodyOn("p/s.jsonl")
		require.Equal(t, searched, a.clients.scan.at, "remembered")
		pid, end := imitation{stdin: tty, control: tty, files: []string{a.database("agent.db")}}.start(t)
		a.crumb(id, "p/s.jsonl")
		a.somebodyOn(pid, id, "p/s.jsonl")
		end()
		a.nobodyOn("p/s.jsonl")
	}
}

// TestClientWithoutTerminalPath: a client whose stdin is no terminal names its breadcrumb by its environment, or by
// a rule that we do not know.
func TestClientWithoutTerminalPath(t *testing.T) {
	databases := func(a *agentDir) []string { return []string{a.database("agent.db"), a.database("history.db")} }
	t.Run("environment", func(t *testing.T) {
		a := newAgentDir(t)
		a.crumb("tmux-%7", "p/s.jsonl")
		a.crumb("zellij-my-work-3", "p/other.jsonl")
		_, end := imitation{env: []string{"TMUX_PANE=%8"}, files: databases(a)}.start(t)
		a.nobodyOn("p/s.jsonl")
		end()
		pid, end := imitation{env: []string{"TMUX_PANE=%7"}, files: databases(a)}.start(t)
		a.crumb("tmux-%7", "p/s.jsonl")
		a.somebodyOn(pid, "tmux-%7", "p/s.jsonl")
		end()
		pid, _ = imitation{env: []string{"ZELLIJ_PANE_ID=3", "ZELLIJ_SESSION_NAME=my/work"}, files: databases(a)}.start(t)
		a.crumb("zellij-my-work-3", "p/other.jsonl")
		a.somebodyOn(pid, "zellij-my-work-3", "p/other.jsonl")
		a.nobodyOn("p/s.jsonl")
	})
	t.Run("controlling terminal", func(t *testing.T) {
		a := newAgentDir(t)
		tty, id := terminal(t)
		a.crumb(id, "p/s.jsonl")
		pid, _ := imitation{control: tty, files: databases(a)}.start(t)
		a.somebodyOn(pid, id, "p/s.jsonl")
	})
	t.Run("unknown", func(t *testing.T) {
		a := newAgentDir(t)
		tty, id := terminal(t)
		a.crumb("future-1", "p/s.jsonl")
		a.crumb(id, "p/other.jsonl")
		imitation{stdin: tty, control: tty, files: databases(a)}.start(t)
		a.nobodyOn("p/s.jsonl") // it is the one of p/other.jsonl
		pid, _ := imitation{files: databases(a)}.start(t)
		a.crumb("future-1", "p/s.jsonl")
		a.somebodyOn(pid, "future-1", "p/s.jsonl")
	})
	t.Run("unseen", func(t *testing.T) {
		a := newAgentDir(t)
		a.clients.proc = t.TempDir() // as from within a container
		a.crumb("pts-0", "p/s.jsonl")
		a.nobodyOn("p/s.jsonl")
		_, end := imitation{files: databases(a)}.start(t)
		a.somebodyOn(0, "pts-0", "p/s.jsonl")
		a.nobodyOn("p/other.jsonl")
		end()
		a.nobodyOn("p/s.jsonl")
	})
}

// TestClientNamesByOtherPath: the breadcrumb's path may lead to the session by a link, or by the name that its
// directory had before.
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
		crumb := breadcrumb{file: test.file}
		require.Equal(t, test.want, crumb.isOf(test.family), "%s %s", test.file, test.family)
	}
}

// TestLiveRefusesEveryWrite: each kind of write is refused, and says by whom; a fork is none.
func TestLiveRefusesEveryWrite(t *testing.T) {
	a := newAgentDir(t)
	tty, id := terminal(t)
	a.crumb(id, "p/s.jsonl")
	ctx := context.Background()
	const old = "p/old.jsonl"
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "sessions", old), []byte(strings.Replace(plainFile, `"version":3`, `"version":2`, 1)), 0o600))
	writes := map[string]func(*Writer, *Session) error{
		"append": func(w *Writer, s *Session) error {
			_, err := w.Append(ctx, s, []byte(`{"type":"mode_change","mode":"plan"}`))
			return err
		},
		"leaf":  func(w *Writer, s *Session) error { return w.MoveLeaf(ctx, s, "a") },
		"reset": func(w *Writer, s *Session) error { return w.ResetLeaf(ctx, s) },
		"label": func(w *Writer, s *Session) error { return w.SetLabel(ctx, s, "a", "L") },
		"title": func(w *Writer, s *Session) error { return w.SetTitle(ctx, s, "T") },
	}
	store := NewStore(a.sessions)
	t.Cleanup(store.Close)
	pid, end := imitation{stdin: tty, control: tty, files: []string{a.database("agent.db")}}.start(t)
	w := NewWriter(store, WriteOptions{Clients: a.clients})
	for _, name := range []string{"p/s.jsonl", "p/s/sub.jsonl", old} {
		a.crumb(id, name)
		before := fileContent(t, a.sessions, name)
		s := store.Session(name)
		for what, write := range writes {
			err := write(w, s)
			var live *LiveError
			require.ErrorAs(t, err, &live, "%s %s", what, name)
			require.ErrorIs(t, err, ErrBusy)
			require.Equal(t, pid, live.PID)
			require.Contains(t, err.Error(), fmt.Sprintf("process %d", pid))
		}
		require.Equal(t, before, fileContent(t, a.sessions, name))
		_, err := w.Fork(ctx, s, "a")
		require.NoError(t, err)
		if name == old {
			allowed := NewWriter(store, WriteOptions{Clients: a.clients, LiveAllow: true})
			require.NoError(t, writes["append"](allowed, s))
		}
	}
	end()
	for what, write := range writes {
		require.NoError(t, write(w, store.Session("p/s.jsonl")), what)
	}
}

// TestDescriptorNamesThePID: of a process that keeps the file open for writing, which one it is.
func TestDescriptorNamesThePID(t *testing.T) {
	a := newAgentDir(t)
	store := NewStore(a.sessions)
	t.Cleanup(store.Close)
	w := NewWriter(store, WriteOptions{Clients: a.clients})
	pid, end := imitation{files: []string{dirtest.Path(a.sessions, "p/s.jsonl")}}.start(t)
	_, err := w.Append(context.Background(), store.Session("p/s.jsonl"), []byte(`{"type":"mode_change","mode":"plan"}`))
	var live *LiveError
	require.ErrorAs(t, err, &live)
	require.Equal(t, LiveError{"p/s.jsonl", SignDescriptor, pid, live.Command, ""}, *live)
	end()
	_, err = w.Append(context.Background(), store.Session("p/s.jsonl"), []byte(`{"type":"mode_change","mode":"plan"}`))
	require.NoError(t, err)
}

// TestChild is no test but the other process.
func TestChild(*testing.T) {
	childtest.Run(map[string]func(args []string) error{"client": childClient, "stray": childStrayWriter, "lease": childLease})
}
