//go:build linux

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

// A mount whose server was killed while a thread of it waited for the mount itself: the process cannot end, and all
// who look wait.

// stuckEnv has the mount point that a copy of this test program is to serve in this way.
const stuckEnv = "SESSIONFS_TEST_STUCK"

// stuckFS answers no look-up.
type stuckFS struct{ fuse.RawFileSystem }

func (stuckFS) Lookup(<-chan struct{}, *fuse.InHeader, string, *fuse.EntryOut) fuse.Status {
	fmt.Println("a look-up")
	select {}
}

// serveStuck mounts a stuckFS and opens a file in it.
func serveStuck(mountpoint string) int {
	server, err := fuse.NewServer(stuckFS{fuse.NewDefaultRawFileSystem()}, mountpoint,
		&fuse.MountOptions{Name: mountopts.Subtype, FsName: "stuck", DirectMount: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() { _, _ = os.Open(filepath.Join(mountpoint, "file")) }()
	server.Serve()
	return 0
}

// mountStuck returns the killed server of a mount that hangs, and somebody who waits for it.
func (s *store) mountStuck() (server, visitor *exec.Cmd) {
	s.t.Helper()
	self, err := os.Executable()
	require.NoError(s.t, err)
	copied := filepath.Join(s.dir, mountopts.Subtype+".test") // where the user may run it
	s.sh(`cp "$1" "$2" && chmod 755 "$2"`, self, copied)
	server = s.command(copied)
	server.Env = append(server.Env, stuckEnv+"="+s.mountpoint)
	out, err := server.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, server.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(s.t, err)
	e, ok := mountAt(s.mountpoint)
	require.True(s.t, ok)
	s.t.Cleanup(func() {
		if server.ProcessState != nil {
			return // and another mount may have the number of the connection
		}
		_ = writeAbort(e)
		if left, ok := mountAt(s.mountpoint); ok && left.minor == e.minor {
			_ = unix.Unmount(s.mountpoint, unix.MNT_FORCE|unix.MNT_DETACH)
		}
	})
	visitor = s.command("ls", s.mountpoint)
	require.NoError(s.t, visitor.Start())
	require.NoError(s.t, server.Process.Kill())
	require.True(s.t, eventually(func() bool { return serverKilled(e, true) }), "it is not stuck")
	return server, visitor
}

// requireFreed: nobody waits any more, and nothing of the mount is left.
func (s *store) requireFreed(server, visitor *exec.Cmd) {
	s.t.Helper()
	s.requireEnds(visitor)
	require.False(s.t, visitor.ProcessState.Success())
	s.requireEnds(server)
}

// TestStuckMount: a mount in the place of one that hangs, and -u, free everybody.
func TestStuckMount(t *testing.T) {
	requireFusectl(t)
	forEachUser(t, func(t *testing.T, s *store) {
		server, visitor := s.mountStuck()
		s.mount()
		s.requireFreed(server, visitor)
		s.requireMounted()
		require.Zero(t, s.run("-u", s.mountpoint).code)
		s.requireUnmounted()
		for _, u := range []string{"-u", "-uz"} {
			server, visitor = s.mountStuck()
			r := s.run(u, s.mountpoint)
			require.Zero(t, r.code, r)
			s.requireFreed(server, visitor)
			s.requireUnmounted()
		}
	})
}

// TestStuckMountWithoutFusectl: root can do without; others are told.
func TestStuckMountWithoutFusectl(t *testing.T) {
	if os.Getenv(namespaceEnv) == "" || unix.Unmount(connections, 0) != nil {
		t.Skip("takes fusectl away, so root in a mount namespace")
	}
	t.Cleanup(func() { require.NoError(t, unix.Mount("fusectl", connections, "fusectl", 0, "")) })
	forEachUser(t, func(t *testing.T, s *store) {
		server, visitor := s.mountStuck()
		if s.user.uid != 0 {
			requireStatus(t, exitMountpoint, s.run(s.source, s.mountpoint), "killed", "fuse/connections", "sudo sessionfs -u "+s.mountpoint)
			requireStatus(t, exitUnmount, s.run("-u", s.mountpoint), "killed", "fuse/connections", "sudo sessionfs -u "+s.mountpoint)
		}
		root := *s
		root.user.uid = 0
		r := root.run("-u", s.mountpoint)
		require.Zero(t, r.code, r)
		s.requireFreed(server, visitor)
		s.requireUnmounted()
	})
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
