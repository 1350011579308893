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

// The default of SOURCE is the client's.
func TestDefaultSource(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireFuse(t, s.user)
	r := s.run(s.mountpoint)
	requireStatus(t, exitSource, r, filepath.Join(s.dir, ".omp/agent"), "--demo")

	s.mkdir(".pi")
	require.NoError(t, os.Symlink(s.source, filepath.Join(s.dir, ".pi/agent")))
	require.Zero(t, s.run(s.mountpoint).code, "pi's, where there is none of omp")
	s.requireMounted()
	require.Zero(t, s.run("-u", s.mountpoint).code)

	s.mkdir(".omp")
	require.NoError(t, os.Symlink(s.source, filepath.Join(s.dir, ".omp/agent")))
	require.Zero(t, s.run(s.mountpoint).code)
	s.requireMounted()
	e, _ := mountAt(s.mountpoint)
	require.Equal(t, s.source, e.source, "resolved")
	require.Zero(t, s.run("-u", s.mountpoint).code)

	s.mkdir("sessions") // an agent directory around the mount point
	cmd := s.command(program, s.mountpoint)
	cmd.Env = append(cmd.Env, "PI_CODING_AGENT_DIR="+s.dir)
	requireStatus(t, exitMountpoint, s.finish(cmd), "lies in SOURCE", s.dir)
}

// TestXDG: the parts of the default SOURCE are where the client has them.
func TestXDG(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireFuse(t, s.user)
	for _, name := range []string{"data", "state", ".omp/agent"} {
		s.mkdir(name)
	}
	run := func(args ...string) result {
		cmd := s.command(program, args...)
		cmd.Env = append(cmd.Env, "XDG_DATA_HOME="+filepath.Join(s.dir, "data"), "XDG_STATE_HOME="+filepath.Join(s.dir, "state"))
		return s.finish(cmd)
	}
	crumbs := func(want string, args ...string) {
		t.Helper()
		require.Zero(t, run(append(args, s.mountpoint)...).code)
		r := s.exec("ls", filepath.Join(s.mountpoint, "terminal-sessions"))
		require.Equal(t, want, r.stdout, r.stderr)
		s.requireMounted()
		require.Zero(t, s.run("-u", s.mountpoint).code)
		s.requireUnmounted()
	}
	crumb := func(dir string) {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, strings.Split(strings.TrimPrefix(dir, s.dir+"/"), "/")[0][1:]), nil, 0o600))
	}
	crumb(filepath.Join(s.dir, ".omp/agent/terminal-sessions"))
	r := run(s.mountpoint)
	require.Zero(t, r.code, r)
	e, _ := mountAt(s.mountpoint)
	require.Equal(t, filepath.Join(s.dir, ".omp/agent"), e.source, "nothing was migrated")
	require.Zero(t, s.run("-u", s.mountpoint).code)
	require.NoError(t, os.Symlink(s.source, filepath.Join(s.dir, "data/omp")))
	crumbs("omp\n")
	crumb(filepath.Join(s.dir, "state/omp/terminal-sessions"))
	crumbs("tate\n")
	crumbs("tate\n", filepath.Join(s.dir, "data/omp"))
	other := s.mkdir("other")
	require.NoError(t, os.Symlink(filepath.Join(s.source, "sessions"), filepath.Join(other, "sessions")))
	crumbs("", other)
	requireStatus(t, exitMountpoint, run(filepath.Join(s.dir, "state/omp/terminal-sessions")), "lies in SOURCE")
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
