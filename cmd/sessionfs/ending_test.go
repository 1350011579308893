//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
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

// typed makes a session that somebody typed something into.
func (s *store) typed(cwd, text string) string {
	s.t.Helper()
	session := s.newSession(cwd)
	s.ask(session+"/append", typedLine(text))
	require.Contains(s.t, s.onDisk(session), text)
	return session
}

// files lists all files of SOURCE.
func (s *store) files() string {
	s.t.Helper()
	out, err := exec.Command("find", s.source, "-type", "f", "-printf", "%P\n").Output()
	require.NoError(s.t, err)
	return string(out)
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
				typed := s.typed("/home/dev/new", "typed & kept")
				beside := s.typed("/work", "in a directory that is there")
				empty := s.newSession("/home/dev/empty")
				fork := s.ask(typed+"/fork", strings.TrimSuffix(filepath.Base(s.readlink(typed+"/leaf")), ".json"))
				before := s.exec("cat", s.in(typed+".jsonl")).stdout
				release := func() {}
				if e.detached {
					release = s.hold()
				}
				r := e.end(s, pid)
				require.Zero(t, r.code, r)
				if strings.HasPrefix(e.name, "sessionfs -u") {
					require.Equal(t, before, s.onDisk(typed), "on disk when the command returns")
				}
				release()
				s.requireUnmounted()
				require.Equal(t, before, s.onDisk(typed))
				require.Contains(t, before, "typed & kept")
				require.Contains(t, s.onDisk(beside), "in a directory that is there")
				require.Contains(t, s.onDisk(fork), "typed & kept")
				require.NotEmpty(t, s.onDisk(empty))
				require.Len(t, strings.Fields(s.files()), 5, "nothing else is there: %s", s.files())
				s.requireOwned(typed)

				s.mkdir("mnt") // one of the endings took it along
				s.mount()      // and it goes on
				s.ask(typed+"/append", typedLine("more"))
				require.Contains(t, s.onDisk(typed), "more")
				s.unmount()
			})
		})
	}
}

func (s *store) readlink(path string) string {
	s.t.Helper()
	r := s.exec("readlink", s.in(path))
	require.Zero(s.t, r.code, r)
	return strings.TrimSpace(r.stdout)
}

// requireOwned: a session is its user's alone.
func (s *store) requireOwned(session string) {
	s.t.Helper()
	var st unix.Stat_t
	require.NoError(s.t, unix.Stat(filepath.Join(s.source, session+".jsonl"), &st))
	require.Equal(s.t, fmt.Sprintf("%o %d", 0o600, s.user.uid), fmt.Sprintf("%o %d", st.Mode&0o777, st.Uid))
}

// TestKill kills the daemon, which cannot clean up then. Acknowledged entries are on disk.
func TestKill(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		s.mount()
		session := s.typed("/home/dev/killed", "first")
		s.kill()
		require.Contains(t, s.onDisk(session), "first")
		s.requireOwned(session)
		s.mount()
		require.Equal(t, s.onDisk(session), s.exec("cat", s.in(session+".jsonl")).stdout)
		s.unmount()
	})
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

// TestUnmountFull: -u has nothing to save, so that it never fails because of a new session, also where SOURCE is full.
func TestUnmountFull(t *testing.T) {
	if os.Geteuid() != 0 || os.Getenv(namespaceEnv) == "" {
		t.Skip("mounts a file system, so root in a mount namespace")
	}
	forEachUser(t, func(t *testing.T, s *store) {
		require.NoError(t, unix.Mount("tmpfs", s.source, "tmpfs", 0, fmt.Sprintf("size=1m,mode=0700,uid=%d,gid=%d", s.user.uid, s.user.uid)))
		t.Cleanup(func() { _ = unix.Unmount(s.source, unix.MNT_DETACH) })
		s.mkdir("agent/sessions")
		s.mount()
		session := s.typed("/home/dev/new", "typed")
		_ = exec.Command("sh", "-c", `cat /dev/zero > "$1/filler" 2>/dev/null; echo >> "$1/filler2"`, "sh", s.source).Run()
		r := s.exec("bash", "-c", `echo '{"cwd":"/home/dev/more","create":true}' > "$1"`, "bash", s.in("new-session"))
		require.Contains(t, r.stderr, unix.ENOSPC.Error()[1:])
		s.run("-u", s.mountpoint).ok(t)
		s.requireUnmounted()
		require.Contains(t, s.onDisk(session), "typed")
	})
}
