//go:build linux

package main

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestServerLeavesItsMountAlone: until somebody looks, the kernel has nothing to ask but INIT. A server that waits for
// its own answer cannot be killed.
func TestServerLeavesItsMountAlone(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		cmd := s.command(program, "-f", "-d", s.source, s.mountpoint)
		stderr, err := cmd.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		request := regexp.MustCompile(`rx \d+: (\w+)`)
		var requests []string
		isMounted := false
		log := bufio.NewScanner(stderr)
		for log.Scan() {
			match := request.FindStringSubmatch(log.Text())
			if match != nil && !isMounted {
				requests = append(requests, match[1])
			}
			if strings.Contains(log.Text(), "msg=mounted") {
				isMounted = true
				require.NoError(t, cmd.Process.Signal(unix.SIGTERM)) // and the rest is read until it has ended
			}
		}
		require.NoError(t, cmd.Wait())
		require.True(t, isMounted)
		require.Equal(t, []string{"INIT"}, requests)
		s.requireUnmounted()
	})
}

// kills is how often TestKilledAtStart kills: with a server that opened a file of its mount, one of 20 could not die.
const kills = 40

// TestKilledAtStart: wherever SIGKILL strikes, the server ends, who looks at the mount gets an answer, and the next
// mount is as usual.
func TestKilledAtStart(t *testing.T) {
	t.Parallel()
	forEachUser(t, func(t *testing.T, s *store) {
		random := rand.New(rand.NewPCG(1, 2))
		for round := range kills {
			server := s.command(program, "-f", s.source, s.mountpoint)
			require.NoError(t, server.Start())
			if round%4 != 0 { // else before the mount is there, mostly
				require.True(t, soon(func() bool {
					_, ok := fs.MountAt(s.mountpoint)
					return ok
				}), "round %d: not mounted", round)
			}
			time.Sleep(time.Duration(random.Int64N(int64(8 * time.Millisecond))))
			require.NoError(t, server.Process.Kill())
			s.requireEnds(server)
			look := s.command("ls", s.mountpoint)
			require.NoError(t, look.Start())
			s.requireEnds(look)
			// The server is dead, but fusermount3, which it called, may be about to mount.
			require.True(t, eventually(func() bool { return !isNamed(s.mountpoint) }))
			if round%8 == 0 {
				s.mount()
				s.requireMounted()
				require.Zero(t, s.run("-u", s.mountpoint).code)
			}
			_, isLeft := fs.MountAt(s.mountpoint)
			if isLeft {
				require.NoError(t, detach(s.mountpoint))
			}
			s.requireUnmounted()
		}
	})
}

// isNamed reports whether a process has a path among its arguments.
func isNamed(path string) bool {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		args, _ := os.ReadFile(file) // it may have ended
		if slices.Contains(strings.Split(string(args), "\x00"), path) {
			return true
		}
	}
	return false
}

// soon is eventually without a pause: to strike early.
func soon(ok func() bool) bool {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if ok() {
			return true
		}
	}
	return false
}

// requireEnds fails the test if a process does not end. It then aborts the mount, so that nothing is left behind.
func (s *store) requireEnds(cmd *exec.Cmd) {
	s.t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	select {
	case <-ended:
		return
	case <-time.After(patience):
	}
	_ = unix.Unmount(s.mountpoint, unix.MNT_FORCE|unix.MNT_DETACH) // aborts
	<-ended
	s.t.Fatalf("%s could not be killed", cmd)
}
