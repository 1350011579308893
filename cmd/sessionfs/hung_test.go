//go:build linux

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestHungSource: a mount of a SOURCE that does not answer can be ended, by -u -z and by a signal, and nobody waits for it
// any more.
func TestHungSource(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("ends a connection without fusectl, so root")
	}
	for _, end := range []string{"-u -z", "signal"} {
		t.Run(end, func(t *testing.T) {
			below := newStore(t, user{"root", 0})
			requireFuse(t, below.user)
			s := *below
			s.source, s.mountpoint = below.mountpoint, below.mkdir("above")
			hangs := below.mount()
			r := s.run("-o", "noshared", s.source, s.mountpoint)
			require.Zero(t, r.code, r)
			pids := daemons(s.dir)
			require.Len(t, pids, 2)
			above := pids[0] + pids[1] - hangs
			require.NoError(t, unix.Kill(hangs, unix.SIGSTOP))
			t.Cleanup(func() { _ = unix.Kill(hangs, unix.SIGCONT) })
			waits := s.command("cat", filepath.Join(s.mountpoint, sessionPath))
			require.NoError(t, waits.Start())
			time.Sleep(200 * time.Millisecond)
			if end == "signal" {
				require.NoError(t, unix.Kill(above, unix.SIGTERM))
			} else {
				r = s.run("-u", "-z", s.mountpoint)
				require.Zero(t, r.code, r)
			}
			s.requireEnds(waits)
			require.False(t, waits.ProcessState.Success())
			require.True(t, eventually(func() bool { _, ok := mountAt(s.mountpoint); return !ok }))
		})
	}
}

// TestStoppedServer: a server that lives but does not answer loses its mount only if -z insists, and what was typed not
// even then.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	requireFusectl(t)
	forEachUser(t, func(t *testing.T, s *store) {
		pid := s.mount()
		session := s.typed("/home/dev/new", "typed")
		stop(t, pid)
		t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGCONT) })
		requireStatus(t, exitMountpoint, s.run(s.source, s.mountpoint), "does not answer", "sessionfs -u -z "+s.mountpoint)
		require.NoError(t, unix.Kill(pid, unix.SIGCONT))
		s.requireMounted()

		stop(t, pid)
		visitor := s.command("cat", s.in(sessionPath))
		var said io.ReadCloser
		said, err := visitor.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, visitor.Start())
		r := s.run("-u", "-z", s.mountpoint)
		require.Zero(t, r.code, r)
		text, err := io.ReadAll(said)
		require.NoError(t, err)
		require.NotEmpty(t, string(text))
		s.requireEnds(visitor)
		_, mounted := mountAt(s.mountpoint)
		require.False(t, mounted)
		require.NoError(t, unix.Kill(pid, unix.SIGCONT))
		s.requireUnmounted()
		require.Contains(t, s.onDisk(session), "typed")
	})
}

// TestSourceNotConnected: a mount whose SOURCE is a dead mount is not dead itself, and goes on when SOURCE is back.
func TestSourceNotConnected(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		second, other := s.mkdir("second"), s.mkdir("other")
		s.mkdir("other/sessions")
		pid := s.mount()
		// The kernel asks for the attributes of the root directory, which are SOURCE's, at each look.
		r := s.run("-o", "attr_timeout=0", s.mountpoint, second)
		require.Zero(t, r.code, r)
		require.NoError(t, unix.Kill(pid, unix.SIGKILL))
		require.True(t, eventually(func() bool { return len(daemons(s.dir)) == 1 }))
		require.True(t, eventually(func() bool { // once the connection is gone to its end
			return strings.Contains(s.exec("ls", filepath.Join(second, "sessions")).stderr, "not connected")
		}))
		requireStatus(t, exitMountpoint, s.run(other, second), "already mounted", second)
		r = s.run(s.source, s.mountpoint)
		require.Zero(t, r.code, r)
		require.True(t, eventually(func() bool { return s.exec("cat", filepath.Join(second, sessionPath)).stdout == sessionText }))
		require.Zero(t, s.run("-u", second).code)
		require.Zero(t, s.run("-u", s.mountpoint).code)
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
