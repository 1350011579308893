package childtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// childTask is the variable that makes the test binary another process of a test.
const childTask = "SESSIONFS_TEST_CHILD"

// Command prepares another process; the arguments have no newlines.
func Command(t testing.TB, task string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childTask+"_ARGS="+strings.Join(args, "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

// Start starts one and waits for its first line. It works on until its stdin is closed.
func Start(t *testing.T, task string, args ...string) (pid int, end func()) {
	t.Helper()
	cmd := Command(t, task, args...)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "%s", line)
	require.Equal(t, "ready\n", line)
	end = sync.OnceFunc(func() {
		_ = stdin.Close()
		require.NoError(t, cmd.Wait())
	})
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// RunAsNobody runs a child as a user without rights, from a copy of the binary that such a user may read.
func RunAsNobody(t *testing.T, task string, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user")
	}
	dir, err := os.MkdirTemp("/tmp", "sessioncore")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	binary, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "child.test"), binary, 0o755))

	cmd := Command(t, task, args...)
	cmd.Path = filepath.Join(dir, "child.test")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(Nobody), Gid: uint32(Nobody)}}
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// Nobody is a user who has no processes: below the 65,536 numbers that a container may have, and another
// one in each run, since runs beside each other would see each other's.
var Nobody = 20_000 + os.Getpid()%40_000

// SayReady tells the parent, and waits until it closes our stdin.
func SayReady() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// Run does the task that the process was started for, if it was started as a child, and ends it. A package's
// test TestChild calls it.
func Run(tasks map[string]func(args []string) error) {
	task := os.Getenv(childTask)
	if task == "" {
		return
	}
	do, ok := tasks[task]
	if !ok {
		fmt.Println("no such task:", task)
		os.Exit(1)
	}
	if err := do(strings.Split(os.Getenv(childTask+"_ARGS"), "\n")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}
