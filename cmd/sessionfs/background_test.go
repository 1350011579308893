//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The background process holds on to nothing of where it was started.
func TestBackgroundDetached(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		lock, err := os.Create(filepath.Join(s.dir, "lock"))
		require.NoError(t, err)
		defer lock.Close()
		cmd := s.command("sh", "-c", `exec 9<&3; exec "$@"`, "sh", program, s.source, s.mountpoint)
		cmd.ExtraFiles = []*os.File{lock}
		r := s.finish(cmd) // reads stderr to its end, so nobody holds it
		require.Zero(t, r.code, r.stderr)

		proc := fmt.Sprintf("/proc/%d/", s.pid())
		cwd, err := os.Readlink(proc + "cwd")
		require.NoError(t, err)
		require.Equal(t, "/", cwd)
		sid, err := unix.Getsid(s.pid())
		require.NoError(t, err)
		require.Equal(t, s.pid(), sid, "a session of its own")
		for _, fd := range []string{"0", "1", "2"} {
			target, err := os.Readlink(proc + "fd/" + fd)
			require.NoError(t, err)
			require.Equal(t, os.DevNull, target)
		}
		links, err := filepath.Glob(proc + "fd/*")
		require.NoError(t, err)
		for _, link := range links {
			target, _ := os.Readlink(link)
			require.NotEqual(t, lock.Name(), target, "an inherited descriptor was kept")
		}
		env, err := os.ReadFile(proc + "environ")
		require.NoError(t, err)
		require.Contains(t, string(env), "HOME="+s.dir)
	})
}

// -f stays in front and logs to stderr; each of the signals unmounts and ends it well.
func TestForeground(t *testing.T) {
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP} {
		t.Run(unix.SignalName(signal), func(t *testing.T) {
			forEachUser(t, func(t *testing.T, s *store) {
				cmd := s.command(program, "-f", s.source, s.mountpoint)
				stderr, err := cmd.StderrPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				log := bufio.NewReader(stderr)
				line, err := log.ReadString('\n')
				require.NoError(t, err)
				require.Contains(t, line, "mounted")
				require.Contains(t, line, s.mountpoint)
				s.requireMounted()
				require.NoError(t, cmd.Process.Signal(signal))
				var rest strings.Builder
				_, err = log.WriteTo(&rest)
				require.NoError(t, err)
				require.NoError(t, cmd.Wait(), rest.String())
				require.Contains(t, rest.String(), "unmounted")
				s.requireUnmounted()
			})
		})
	}
}

// A reader of the log that goes away does not take the mount down.
func TestForegroundLogReaderGone(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireFuse(t, s.user)
	cmd := s.command(program, "-f", "-d", s.source, s.mountpoint)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, eventually(func() bool { _, ok := mountAt(s.mountpoint); return ok }))
	s.requireMounted()
	require.NoError(t, stderr.Close())
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM)) // logs
	require.NoError(t, cmd.Wait())
	s.requireUnmounted()
}

// SIGTERM in the background unmounts, and SIGHUP does nothing.
func TestBackgroundSignals(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		pid := s.mount()
		require.NoError(t, unix.Kill(pid, unix.SIGHUP))
		s.requireMounted()
		require.NoError(t, unix.Kill(pid, unix.SIGTERM))
		s.requireUnmounted()
	})
}

// An interrupt that comes before the mount is ready ends both processes, with a status that says so.
func TestInterruptEarly(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		for range 20 { // wherever it strikes
			cmd := s.command(program, s.source, s.mountpoint)
			require.NoError(t, cmd.Start())
			require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
			_ = cmd.Wait()
			for _, pid := range daemons(s.dir) { // it was ready before the signal
				_ = unix.Kill(pid, unix.SIGTERM)
			}
			s.requireUnmounted()
		}
	})
}
