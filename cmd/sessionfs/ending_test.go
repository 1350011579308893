//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// These tests require that a new session's entries are on disk, however the mount ends
// (docs/design.md, new-session).

// typedLine is a user's message, as a line of append.
func typedLine(text string) string {
	return `{"type":"message","message":{"role":"user","content":"` + text + `"}}`
}

// ask writes a line to a control file of the mount and returns the answer.
func (s *store) ask(file, line string) string {
	s.t.Helper()
	r := s.exec("bash", "-c", `exec 3<>"$1" && printf '%s\n' "$2" >&3 && read -r answer <&3 && printf '%s' "$answer"`, "bash", s.in(file), line)
	require.Zero(s.t, r.code, r)
	require.NotEmpty(s.t, r.stdout, "no answer")
	return r.stdout
}

// in is a path in the mount.
func (s *store) in(path string) string { return filepath.Join(s.mountpoint, path) }

// onDisk reads the file of a session, whose directory has that path in the mount; "" where there is none.
func (s *store) onDisk(session string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.source, session+".jsonl"))
	if err != nil {
		require.ErrorIs(s.t, err, os.ErrNotExist)
	}
	return string(text)
}

// newSession makes a session.
func (s *store) newSession(cwd string) string {
	s.t.Helper()
	session := s.ask("new-session", `{"cwd":"`+cwd+`","create":true}`)
	require.Equal(s.t, 1, strings.Count(s.onDisk(session), "\n"), "the header is on disk")
	return session
}

// ending is a way to end a mount.
type ending struct {
	name     string
	root     bool // only root can
	detached bool // a file is held open, so that the mount is detached, and the process goes on or not
	end      func(s *store, pid int) result
}

func killing(signal unix.Signal) func(s *store, pid int) result {
	return func(s *store, pid int) result {
		require.NoError(s.t, unix.Kill(pid, signal))
		return result{}
	}
}

var endings = []ending{
	{name: "sessionfs -u", end: func(s *store, _ int) result { return s.run("-u", s.mountpoint) }},
	{name: "sessionfs -u -z", detached: true, end: func(s *store, _ int) result { return s.run("-u", "-z", s.mountpoint) }},
	{name: "fusermount3 -u", end: func(s *store, _ int) result { return s.exec("fusermount3", "-u", s.mountpoint) }},
	{name: "fusermount3 -uz", detached: true, end: func(s *store, _ int) result { return s.exec("fusermount3", "-u", "-z", s.mountpoint) }},
	{name: "umount", root: true, end: func(s *store, _ int) result { return s.exec("umount", s.mountpoint) }},
	{name: "umount -l", root: true, detached: true, end: func(s *store, _ int) result { return s.exec("umount", "-l", s.mountpoint) }},
	{name: "SIGTERM", end: killing(unix.SIGTERM)},
	{name: "SIGTERM while in use", detached: true, end: killing(unix.SIGTERM)},
	{name: "the mount point removed where it is no mount point", root: true, detached: true, end: func(s *store, _ int) result {
		return s.exec("unshare", "--mount", "--propagation", "private", "sh", "-c", `umount -l "$1" && rmdir "$1"`, "sh", s.mountpoint)
	}},
	{name: "an aborted connection", root: true, detached: true, end: func(s *store, _ int) result {
		return s.exec("sh", "-c", `echo 1 > "/sys/fs/fuse/connections/$(mountpoint -d "$1" | cut -d: -f2)/abort"; umount -l "$1"`, "sh", s.mountpoint)
	}},
}

func TestEndingKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	for _, e := range endings {
		t.Run(e.name, func(t *testing.T) {
			forEachUser(t, func(t *testing.T, s *store) {
				if e.root && s.user.uid != 0 {
					t.Skip("root's")
				}
				pid := s.mount()
				session := s.newSession("/home/dev/new")
				s.ask(session+"/append", typedLine("typed & kept"))
				before := s.onDisk(session)
				require.Contains(t, before, "typed & kept")
				release := func() {}
				if e.detached {
					release = s.hold()
				}
				r := e.end(s, pid)
				require.Zero(t, r.code, r)
				release()
				s.requireUnmounted()
				require.Equal(t, before, s.onDisk(session))
				var st unix.Stat_t
				require.NoError(t, unix.Stat(filepath.Join(s.source, session+".jsonl"), &st))
				require.Equal(t, fmt.Sprintf("%o %d", 0o600, s.user.uid), fmt.Sprintf("%o %d", st.Mode&0o777, st.Uid), "it is its user's alone")

				s.mkdir("mnt") // one of the endings took it along
				s.mount()      // and it goes on
				s.ask(session+"/append", typedLine("more"))
				require.Contains(t, s.onDisk(session), "more")
				s.unmount()
			})
		})
	}
}

// TestWrittenWhileDetached: what comes through a file that is open when the mount ends is on disk once it is
// acknowledged, though the process may end at any moment.
func TestWrittenWhileDetached(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		pid := s.mount()
		session := s.newSession("/home/dev/late")
		cmd := s.command("bash", "-c", `exec 3<>"$1"; echo open; n=0; while printf '%s\n' "${2//@/$n}" >&3 2>/dev/null; do echo "typed-$n-"; n=$((n+1)); done`,
			"bash", s.in(session+"/append"), typedLine("typed-@-"))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var acked strings.Builder
		buf := make([]byte, 4096)
		for !strings.Contains(acked.String(), "typed-3-") {
			n, err := out.Read(buf)
			require.NoError(t, err)
			acked.Write(buf[:n])
		}
		require.NoError(t, unix.Kill(pid, unix.SIGTERM))
		for {
			n, err := out.Read(buf)
			acked.Write(buf[:n])
			if err != nil {
				break
			}
		}
		_ = cmd.Wait()
		s.requireUnmounted()
		text := s.onDisk(session)
		lines := strings.Fields(acked.String())[1:]
		for _, line := range lines {
			require.Contains(t, text, line)
		}
		t.Logf("%d lines acknowledged", len(lines))
	})
}
