//go:build linux

package main

import (
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// in is a path in the mount.
func (s *store) in(path string) string { return filepath.Join(s.mountpoint, path) }

// TestHungSource: a mount of a SOURCE that does not answer can be ended, by -u -z and by a signal, and nobody waits for it
// any more.
func TestHungSource(t *testing.T) {
	needsRoot(t, "ends a connection without fusectl, so root")
	for _, end := range []string{"-u -z", "signal"} {
		t.Run(end, func(t *testing.T) {
			below := newStore(t, user{"root", 0})
			requireFuse(t, below.user)
			s := *below
			s.source = below.mountpoint
			s.mountpoint = below.mkdir("above")
			hangs := below.mount()
			s.run("-o", "noshared", s.source, s.mountpoint).ok(t)
			pids := daemons(s.dir)
			require.Len(t, pids, 2)
			above := pids[0] + pids[1] - hangs // the other one
			require.NoError(t, unix.Kill(hangs, unix.SIGSTOP))
			t.Cleanup(func() { _ = unix.Kill(hangs, unix.SIGCONT) })
			waits := []*exec.Cmd{s.command("cat", filepath.Join(s.mountpoint, sessionPath))}
			for i := range 16 { // each takes a thread of the server, the first one too
				waits = append(waits, s.command("stat", filepath.Join(s.mountpoint, "sessions", strconv.Itoa(i))))
			}
			for _, cmd := range waits {
				require.NoError(t, cmd.Start())
			}
			time.Sleep(200 * time.Millisecond)
			if end == "signal" {
				require.NoError(t, unix.Kill(above, unix.SIGTERM))
			} else {
				s.run("-u", "-z", s.mountpoint).ok(t)
			}
			for _, cmd := range waits {
				s.requireEnds(cmd)
				require.False(t, cmd.ProcessState.Success())
			}
			require.True(t, eventually(func() bool {
				_, ok := fs.MountAt(s.mountpoint)
				return !ok
			}))
		})
	}
}

// TestStoppedServer: a server that lives but does not answer loses its mount only if -z insists.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	requireFusectl(t)
	forEachUser(t, func(t *testing.T, s *store) {
		pid := s.mount()
		stop(t, pid)
		t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) })
		requireStatus(t, exitMountpoint, s.run(s.source, s.mountpoint), "does not answer", "sessionfs -u -z "+s.mountpoint)
		require.NoError(t, unix.Kill(pid, unix.SIGCONT))
		s.requireMounted()

		holder := s.command("sh", "-c", "exec 3>"+s.in("new-session")+"; echo; exec sleep 60")
		held, err := holder.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, holder.Start())
		_, err = held.Read(make([]byte, 1))
		require.NoError(t, err)
		stop(t, pid)
		require.NoError(t, holder.Process.Kill())
		visitor := s.command("cat", s.in(sessionPath))
		said, err := visitor.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, visitor.Start())
		began := time.Now()
		s.run("-u", "-z", s.mountpoint).ok(t)
		require.Less(t, time.Since(began), 3*time.Second, "it is seen that nobody is there")
		text, err := io.ReadAll(said)
		require.NoError(t, err)
		require.NotEmpty(t, string(text))
		s.requireEnds(visitor)
		s.requireEnds(holder) // which waited for the answer to its close
		_, mounted := fs.MountAt(s.mountpoint)
		require.False(t, mounted)
		require.NoError(t, unix.Kill(pid, unix.SIGCONT))
		s.requireUnmounted()
	})
}

// fusectlMagic is the type of the file system in connections (FUSE_CTL_SUPER_MAGIC).
const fusectlMagic = 0x65735543

// requireFusectl skips a test where an ordinary user cannot abort a connection, since nobody has mounted fusectl. Tests
// that root runs mount it, and do the same as an ordinary user.
func requireFusectl(t *testing.T) {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(connections, &st); err != nil || st.Type != fusectlMagic {
		t.Skipf("fusectl is not mounted at %s", connections)
	}
}
