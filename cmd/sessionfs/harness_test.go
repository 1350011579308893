//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	// patience is how long a child process may take. A hung mount is to fail a test, not to hang it.
	patience = 30 * time.Second
	// poll is how often something awaited is looked at.
	poll = 5 * time.Millisecond
	// nobody is the ordinary user that root's tests use.
	nobody = 65534
)

// user is who runs the program in a test.
type user struct {
	name string
	uid  int
}

// forEachUser runs a test as root and as an ordinary user where the tests run as root, else as who we are.
func forEachUser(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	users := []user{{"user", os.Geteuid()}}
	if os.Geteuid() == 0 {
		users = []user{{"root", 0}, {"user", nobody}}
	}
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			requireFuse(t, u)
			test(t, newStore(t, u))
		})
	}
}

// requireFuse skips a test, or fails it in CI, where this user cannot mount.
func requireFuse(t *testing.T, u user) {
	t.Helper()
	reason := ""
	out, err := command(t, u, "sh", "-c", "exec 3<>"+fuseDevice).CombinedOutput()
	switch {
	case err != nil:
		reason = string(out)
	case u.uid == 0 && !mayMount():
		reason = "root has no CAP_SYS_ADMIN here"
	case u.uid != 0:
		if _, err := fusermount(); err != nil {
			reason = err.Error()
		}
	}
	if reason == "" {
		return
	}
	skip(t, "FUSE cannot be used by "+u.name+": "+reason)
}

// skip skips, or fails where everything must be there.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv(requireEnv) != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// command prepares a child process of a user.
func command(t *testing.T, u user, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // a background process that keeps stderr open is an error
	if u.uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}}
	}
	return cmd
}

// daemons lists the processes of the program under test that were started for the store in dir, which is
// their HOME; with an empty dir, all of them.
func daemons(dir string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || strings.TrimSuffix(exe, " (deleted)") != program {
			continue
		}
		env, _ := os.ReadFile(filepath.Join(filepath.Dir(link), "environ"))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err == nil && (dir == "" || strings.Contains(string(env), "HOME="+dir+"\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stop stops a process. On a busy machine some of its threads may go on for a moment after kill has returned.
func stop(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
	require.True(t, eventually(func() bool {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
		require.NoError(t, err)
		for _, task := range tasks {
			if text, err := os.ReadFile(task); err == nil && !strings.Contains(string(text), "\nState:\tT") {
				return false
			}
		}
		return len(tasks) > 0
	}), "process %d does not stop", pid)
}

// eventually waits for a condition.
func eventually(ok func() bool) bool {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(poll) {
		if ok() {
			return true
		}
	}
	return false
}

// requireStatus checks an exit status and that the message names all that it should.
func requireStatus(t *testing.T, want int, r result, names ...string) {
	t.Helper()
	require.Equal(t, want, r.code, r.stderr)
	require.True(t, strings.HasPrefix(r.stderr, "sessionfs: ") || strings.Contains(r.stderr, "\nsessionfs: "), r.stderr)
	for _, name := range names {
		require.Contains(t, r.stderr, name)
	}
}

// String makes a result readable in a failure.
func (r result) String() string {
	return fmt.Sprintf("status %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
}
