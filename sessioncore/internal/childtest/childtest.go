package childtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// childTask is the environment variable that makes the test binary run a task as a child process.
const childTask = "SESSIONFS_TEST_CHILD"

// Command returns the command of a child process that runs a task. The arguments must not have newlines.
func Command(t testing.TB, task string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childTask+"_ARGS="+strings.Join(args, "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

// Start starts a child process and waits for its first line, "ready". end closes its stdin and waits until it
// exits.
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

// SayReady tells the parent that the task is ready, and waits until the parent closes our stdin.
func SayReady() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// Run runs the task that the process was started for and exits, if the process is a child. It is called by a
// package's test TestChild.
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
	err := do(strings.Split(os.Getenv(childTask+"_ARGS"), "\n"))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}
