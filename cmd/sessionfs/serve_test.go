//go:build linux

package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sessionfs/fs"

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
		links := glob(t, proc+"fd/*")
		for _, link := range links {
			target, _ := os.Readlink(link)
			require.NotEqual(t, lock.Name(), target, "an inherited descriptor was kept")
		}
		env := readFile(t, proc+"environ")
		require.Contains(t, string(env), "HOME="+s.dir)
		require.NoError(t, unix.Kill(s.pid(), unix.SIGHUP)) // of its terminal
		s.requireMounted()
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
	s := newMountable(t, user{"self", os.Geteuid()})
	cmd := s.command(program, "-f", "-d", s.source, s.mountpoint)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.True(t, eventually(func() bool { _, ok := fs.MountAt(s.mountpoint); return ok }))
	s.requireMounted()
	require.NoError(t, stderr.Close())
	require.NoError(t, cmd.Process.Signal(unix.SIGTERM)) // logs
	require.NoError(t, cmd.Wait())
	s.requireUnmounted()
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

// A mount that nobody uses goes away. While a file is open in it, or a directory is somebody's working directory, it stays.
func TestIdle(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		log := filepath.Join(s.mkdir("logs"), "log")
		s.mount("-o", "idle=5s", "--log-file", log)
		s.requireMounted()
		stays := s.command("sh", "-c", `cd "$1"; echo there; exec sleep 60`, "sh", s.mountpoint)
		out, err := stays.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, stays.Start())
		_, err = out.Read(make([]byte, 8))
		require.NoError(t, err)
		s.awaitText(log, "idle, but in use")
		s.requireMounted()

		release := s.hold()
		require.NoError(t, stays.Process.Kill())
		_ = stays.Wait()
		tries := strings.Count(s.awaitText(log, "idle, unmounting"), "idle, unmounting")
		require.NoError(t, unix.Kill(s.pid(), unix.SIGUSR1))
		require.Contains(t, s.awaitText(log, "msg=counters"), " open=1 ")
		s.requireMounted()
		require.Equal(t, tries, strings.Count(s.awaitText(log, "msg=counters"), "idle, unmounting"), "an open file is known")

		release()
		s.requireUnmounted()
		s.awaitText(log, "msg=unmounted")
	})
}

// In front it tells a service manager when the mount is ready, and when it ends; fusermount3 and what is started in the
// background from within a service tell it nothing.
func TestNotify(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		for _, name := range []string{filepath.Join(s.mkdir("run"), "notify"), "@" + filepath.Base(s.dir)} {
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
			require.NoError(t, err)
			s.chown()
			hear := func(wait time.Duration) string {
				require.NoError(t, socket.SetReadDeadline(time.Now().Add(wait)))
				text := make([]byte, 4096)
				n, err := socket.Read(text)
				if err != nil {
					return err.Error()
				}
				return string(text[:n])
			}
			cmd := s.command(program, "-f", s.source, s.mountpoint)
			cmd.Env = append(cmd.Env, notifyEnv+"="+name)
			require.NoError(t, cmd.Start())
			require.Equal(t, "READY=1\nSTATUS=mounted at "+s.mountpoint+"\n", hear(patience))
			s.requireMounted()
			require.NoError(t, cmd.Process.Signal(unix.SIGTERM))
			require.Equal(t, "STOPPING=1\nSTATUS=unmounting\n", hear(patience))
			require.NoError(t, cmd.Wait())
			s.requireUnmounted()

			cmd = s.command(program, s.source, s.mountpoint)
			cmd.Env = append(cmd.Env, notifyEnv+"="+name)
			require.Zero(t, s.finish(cmd).code)
			s.unmount()
			require.Contains(t, hear(time.Millisecond), "timeout", "all that was said came before the end")
			require.NoError(t, socket.Close())
		}
		// A manager that is gone is no reason not to mount.
		cmd := s.command(program, "-f", s.source, s.mountpoint)
		cmd.Env = append(cmd.Env, notifyEnv+"=/nowhere/notify")
		require.NoError(t, cmd.Start())
		require.True(t, eventually(func() bool { _, ok := fs.MountAt(s.mountpoint); return ok }))
		require.Zero(t, s.run("-u", s.mountpoint).code)
		require.NoError(t, cmd.Wait())
	})
}

// A server that was killed leaves a dead mount behind, on which mkdir fails: the unit starts again nevertheless.
func TestUnitAfterKill(t *testing.T) {
	s := newMountable(t, user{"self", os.Geteuid()})
	text := strings.ReplaceAll(readProject(t, "scripts/sessionfs.service"), "%h/agent-sessions", s.mountpoint)
	s.mount()
	s.kill()
	before := regexp.MustCompile(`(?m)^ExecStartPre=(-?)(.+)$`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, before)
	for _, m := range before {
		if s.exec("sh", "-c", m[2]).code != 0 {
			require.Equal(t, "-", m[1], m[2])
		}
	}
	s.mount()
	s.unmount()
}

// The unit is one that systemd takes.
func TestUnit(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	s := newStore(t, user{"self", os.Geteuid()})
	text := readProject(t, "scripts/sessionfs.service")
	unit := filepath.Join(s.mkdir("units"), "sessionfs.service")
	verify := func(text string) result {
		require.NoError(t, os.WriteFile(unit, []byte(text), 0o600))
		cmd := s.command("systemd-analyze", "verify", "--user", "--man=no", unit)
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+s.mkdir("run"))
		return s.finish(cmd)
	}
	if os.Getenv(namespaceEnv) != "" {
		s.installInPath()
	} else { // the places of installed programs are root's
		text = strings.Replace(text, "\nExecStart=sessionfs ", "\nExecStart="+program+" ", 1)
	}
	r := verify(text)
	require.Zero(t, r.code, r)
	require.Empty(t, r.stderr)
	require.NotEmpty(t, verify(text+"\n[Service]\nTyp=notify\n").stderr, "it tells what is wrong")
}
