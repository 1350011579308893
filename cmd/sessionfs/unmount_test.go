//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
)

// TestUnmountWithoutMtab: without /etc/mtab fusermount3 mounts, but does not unmount: a user is told what root can do, and root needs none of it.
func TestUnmountWithoutMtab(t *testing.T) {
	needsMounts(t, "takes a file away in a mount namespace, so root")
	s := newMountable(t, user{"user", nobody})
	r := s.inNamespace(`cp /etc/passwd "$4"; mount -t tmpfs none /etc; cp "$4" /etc/passwd
		(run "$1" "$2" "$3")
		(run "$1" -u "$3") || echo "status $?"
		(run ls "$3")
		ln -s /proc/self/mounts /etc/mtab
		(run "$1" -u "$3")
		(run "$1" "$2" "$3")
		rm /etc/mtab
		"$1" -u "$3"`, s.source, s.mountpoint, filepath.Join(s.dir, "passwd"))
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "status 7\n")
	require.Contains(t, r.stdout, "recent\n")
	require.Contains(t, r.stderr, s.mountpoint+" is still mounted: ")
	require.Contains(t, r.stderr, "as root: ln -s /proc/self/mounts /etc/mtab")
	s.requireUnmounted()
}

// TestUnmountForeign: only root unmounts what another user mounted.
func TestUnmountForeign(t *testing.T) {
	needsRoot(t, "needs two users, so root")
	s := newMountable(t, user{"user", nobody})
	s.mount()
	other := *s
	other.user.uid = nobody - 1
	requireStatus(t, exitUnmount, other.run("-u", s.mountpoint), "user 65534", "sudo sessionfs -u "+s.mountpoint)
	readable := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(readable, "sessions"), 0o755))
	require.NoError(t, os.Chmod(readable, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(readable), 0o755))
	requireStatus(t, exitMountpoint, other.run(readable, s.mountpoint), "user 65534", "already", s.mountpoint)
	root := *s
	root.user.uid = 0
	requireStatus(t, exitMountpoint, root.run(s.source, s.mountpoint), "user 65534", "already", s.mountpoint)
	s.kill()
	requireStatus(t, exitMountpoint, root.run(s.source, s.mountpoint), "user 65534", "dead", s.mountpoint)
	_, mounted := fs.MountAt(s.mountpoint)
	require.True(t, mounted, "somebody else's dead mount stays")
	require.Zero(t, root.run("-u", s.mountpoint).code)
	s.requireUnmounted()
}
