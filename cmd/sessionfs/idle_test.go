//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A mount that nobody uses goes away, and what was typed into new sessions is on disk then. While a file is open in it,
// or a directory is somebody's working directory, it stays.
func TestIdle(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		log := filepath.Join(s.mkdir("logs"), "log")
		s.mount("-o", "idle=2s", "--log-file", log)
		s.requireMounted()
		session := s.typed("/work", "do not lose this")
		stays := s.command("sh", "-c", `cd "$1"; echo there; exec sleep 60`, "sh", s.mountpoint)
		out, err := stays.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, stays.Start())
		_, err = out.Read(make([]byte, 8))
		require.NoError(t, err)
		s.awaitText(log, "idle, but in use")
		require.Contains(t, s.onDisk(session), "do not lose this")
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
		require.Contains(t, s.onDisk(session), "do not lose this")
	})
}

// As long as new sessions cannot be put on disk, an idle mount stays.
func TestIdleUnsaved(t *testing.T) {
	if os.Geteuid() != 0 || !mayMount() {
		t.Skip("makes SOURCE read-only, so root")
	}
	s := newStore(t, user{"root", 0})
	requireFuse(t, s.user)
	log := filepath.Join(s.mkdir("logs"), "log")
	require.NoError(t, unix.Mount(s.source, s.source, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(s.source, unix.MNT_DETACH) })
	s.mount("-o", "idle=2s", "--log-file", log)
	session := s.typed("/work", "do not lose this")
	require.NoError(t, unix.Mount("", s.source, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	s.awaitText(log, "still mounted")
	s.requireMounted()
	require.NoError(t, unix.Mount("", s.source, "", unix.MS_BIND|unix.MS_REMOUNT, ""))
	s.requireUnmounted()
	require.Contains(t, s.onDisk(session), "do not lose this")
}
