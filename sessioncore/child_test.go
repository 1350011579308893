package sessioncore

import (
	"bufio"
	"bytes"
	"context"
	"errors"
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

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// childTask is the variable that makes the test binary another process of a test.
const childTask = "SESSIONFS_TEST_CHILD"

// childTasks are what such a process can do. Each says a line when it is ready, if somebody waits for it.
var childTasks = map[string]func(args []string) error{
	"append": childAppend,
	"limit":  childLimit,
	"lock":   childLock,
	"hold":   childHold,
	"live":   childLive,
	"chown":  childChown,
	"client": childClient,
	"stray":  childStrayWriter,
}

// TestChild is no test but the other process.
func TestChild(t *testing.T) {
	task := os.Getenv(childTask)
	if task == "" {
		return
	}
	if err := childTasks[task](strings.Split(os.Getenv(childTask+"_ARGS"), "\n")); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child prepares another process; the arguments have no newlines.
func child(t testing.TB, task string, args ...string) *exec.Cmd {
	t.Helper()
	require.Contains(t, childTasks, task)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), childTask+"="+task, childTask+"_ARGS="+strings.Join(args, "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

// startChild starts one and waits for its first line. It works on until its stdin is closed.
func startChild(t *testing.T, task string, args ...string) (pid int, end func()) {
	t.Helper()
	cmd := child(t, task, args...)
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

// runAsNobody runs a child as a user without rights, from a copy of the binary that such a user may read.
func runAsNobody(t *testing.T, task string, args ...string) string {
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

	cmd := child(t, task, args...)
	cmd.Path = filepath.Join(dir, "child.test")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(nobody), Gid: uint32(nobody)}}
	out, err := cmd.Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// nobody is a user who has no processes: below the 65,536 numbers that a container may have, and another
// one in each run, since runs beside each other would see each other's.
var nobody = 20_000 + os.Getpid()%40_000

// sayReady tells the parent, and waits until it closes our stdin.
func sayReady() error {
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// childAppend DIR NAME WHO WRITERS LINES: goroutines append lines under the lock.
func childAppend(args []string) error {
	s, err := OpenFileStorage(args[0])
	if err != nil {
		return err
	}
	writers, _ := strconv.Atoi(args[3])
	lines, _ := strconv.Atoi(args[4])
	return appendLines(s, args[1], args[2], writers, lines)
}

// appendLines is what childAppend and its parent do at the same time. Lines are long and of different
// lengths, so that one that is torn or mixed with another is seen.
func appendLines(s Storage, name, who string, writers, lines int) error {
	failed := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range lines {
				line := fmt.Sprintf("%s %d %d %s.\n", who, w, i, strings.Repeat(who, i%400))
				unlock, err := lockPatiently(s, name)
				if err == nil {
					_, err = s.Append(name, []byte(line))
					err = errors.Join(err, unlock())
				}
				if err != nil {
					failed[w] = err
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// childLimit DIR NAME: a file size limit of 100 bytes is met by appends and a replacement. The limit comes
// in the middle of the data, and, once the file is full, at its first byte (SIGXFSZ).
func childLimit(args []string) error {
	s, err := OpenFileStorage(args[0])
	if err != nil {
		return err
	}
	limit := unix.Rlimit{Cur: 100, Max: 100}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	for _, fill := range []bool{false, true} {
		before, err := s.Stat(args[1])
		if err == nil && fill {
			before, err = s.Append(args[1], bytes.Repeat([]byte("x"), int(100-before.Size)))
		}
		if err != nil {
			return err
		}
		if _, err := s.Append(args[1], make([]byte, 200)); !errors.Is(err, unix.EFBIG) {
			return fmt.Errorf("append: want EFBIG, got %v", err)
		}
		now, err := s.Stat(args[1])
		if err != nil || now.Size != before.Size {
			return fmt.Errorf("size %d after a failed append, %w", now.Size, err)
		}
		_, err = s.Replace(args[1], now.Token, content(strings.Repeat("x", 200)))
		if !errors.Is(err, unix.EFBIG) {
			return fmt.Errorf("replace: want EFBIG, got %v", err)
		}
	}
	return nil
}

// childLock DIR NAME: holds the lock.
func childLock(args []string) error {
	s, err := OpenFileStorage(args[0])
	if err != nil {
		return err
	}
	unlock, err := s.Lock(context.Background(), args[1])
	if err != nil {
		return err
	}
	return errors.Join(sayReady(), unlock())
}

// childHold PATH: holds the file open for writing, as a live client does.
func childHold(args []string) error {
	f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	return errors.Join(sayReady(), f.Close())
}

// childLive DIR NAME: prints what Writers says, and what the search of /proc does.
func childLive(args []string) error {
	s, err := OpenFileStorage(args[0])
	if err != nil {
		return err
	}
	st, err := s.Stat(args[1])
	if err != nil {
		return err
	}
	state, err := s.Writers(args[1])
	fmt.Println(state, searchWriters("/proc", st))
	return err
}

// childChown DIR NAME: replaces another user's file, which must be refused.
func childChown(args []string) error {
	s, err := OpenFileStorage(args[0])
	if err != nil {
		return err
	}
	st, err := s.Stat(args[1])
	if err != nil {
		return err
	}
	if _, err := s.Replace(args[1], st.Token, content("mine\n")); !errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("want a permission error, got %v", err)
	}
	return nil
}
