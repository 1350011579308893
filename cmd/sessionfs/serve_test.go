//go:build linux

package main

import (
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

// TestInterruptEarly: an interrupt that comes before the mount is ready ends both processes, with a status that says so.
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

// TestNotify: in front it tells a service manager when the mount is ready, and when it ends; fusermount3 and what is started in the
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
		require.True(t, eventually(func() bool {
			_, ok := fs.MountAt(s.mountpoint)
			return ok
		}))
		require.Zero(t, s.run("-u", s.mountpoint).code)
		require.NoError(t, cmd.Wait())
	})
}

// TestUnitAfterKill: a server that was killed leaves a dead mount behind, on which mkdir fails: the unit starts again nevertheless.
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

// TestUnit: the unit is one that systemd takes.
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
