package clienttest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/dir"
)

// Agent is an agent directory with sessions, breadcrumbs and databases.
type Agent struct {
	Path      string
	Sessions  *dir.Storage
	Root      *dir.Storage // of the agent directory itself
	Terminals *dir.Storage // of the directory of breadcrumbs

	t testing.TB
}

// Databases are the files that clients have open for writing.
var Databases = []string{"agent.db", "history.db", "models.db"}

// NewAgent creates an agent directory with the sessions p/s.jsonl and p/other.jsonl and one below each. Each has
// the entries a and b.
func NewAgent(t testing.TB) *Agent {
	t.Helper()
	a := &Agent{t: t, Path: t.TempDir()}
	for _, name := range []string{"sessions/p/s", "sessions/p/other", "terminal-sessions"} {
		require.NoError(t, os.MkdirAll(filepath.Join(a.Path, name), 0o700))
	}
	for _, name := range Databases {
		require.NoError(t, os.WriteFile(filepath.Join(a.Path, name), nil, 0o600))
	}
	for _, name := range []string{"p/s.jsonl", "p/s/sub.jsonl", "p/other.jsonl", "p/other/sub.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(a.Path, "sessions", name), []byte(Session), 0o600))
	}
	a.Sessions = sessiontest.OpenDir(t, filepath.Join(a.Path, "sessions"))
	a.Root = sessiontest.OpenDir(t, a.Path)
	a.Terminals = sessiontest.OpenDir(t, filepath.Join(a.Path, "terminal-sessions"))
	return a
}

// Session is the content of the sessions of NewAgent.
var Session = sessiontest.Header + sessiontest.Entry("a", "") + sessiontest.Entry("b", "a")

// Database returns the path of one of the Databases.
func (a *Agent) Database(name string) string { return filepath.Join(a.Path, name) }

// Crumb writes a breadcrumb in place, as a client does.
func (a *Agent) Crumb(terminal, session string) {
	a.t.Helper()
	text := fmt.Sprintf("/w\n%s/sessions/%s\ncwdstat 1 2\n", a.Path, session)
	require.NoError(a.t, os.WriteFile(filepath.Join(a.Path, "terminal-sessions", terminal), []byte(text), 0o600))
}

// Imitation is a process that imitates a client.
type Imitation struct {
	Stdin   *os.File // nil for none
	Control *os.File // the controlling terminal; nil for none
	Env     []string
	Files   []string // held open for writing
}

// terminalVariables are the variables from which clients derive terminal ids. Those of the terminal of the tests
// are cleared.
var terminalVariables = []string{"ZELLIJ_PANE_ID", "TMUX_PANE", "CMUX_SURFACE_ID", "KITTY_WINDOW_ID", "WEZTERM_PANE", "TERM_SESSION_ID", "WT_SESSION"}

// Start starts the process. end kills it.
func (c Imitation) Start(t testing.TB) (pid int, end func()) {
	t.Helper()
	cmd := childtest.Command(t, "client", c.Files...)
	for _, name := range terminalVariables {
		cmd.Env = append(cmd.Env, name+"=")
	}
	cmd.Env = append(cmd.Env, c.Env...)
	life, mine, err := os.Pipe()
	require.NoError(t, err)
	defer life.Close()
	cmd.ExtraFiles = []*os.File{life}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Control != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, c.Control)
		cmd.SysProcAttr.Setctty = true
		cmd.SysProcAttr.Ctty = 4
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

// Child is the main function of the process of an Imitation. It holds the files open for writing as long as the
// test runs.
func Child(args []string) error {
	for _, name := range args {
		if name == "" {
			continue
		}
		_, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
	}
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.NewFile(3, "life"))
	return err
}
