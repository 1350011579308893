//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestUnmountBusy(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		s.mount()
		release := s.hold()
		requireStatus(t, exitUnmount, s.run("-u", s.mountpoint), s.mountpoint, "fuser -vm", "-z")
		s.requireMounted()
		release()
		s.unmount()
	})
}

// -u takes the path as a person has it: relative, with a slash, through a symlink.
func TestUnmountPaths(t *testing.T) {
	s := newMountable(t, user{"self", os.Geteuid()})
	require.NoError(t, os.Symlink("mnt", filepath.Join(s.dir, "link")))
	for _, path := range []string{"mnt", "mnt/", "./mnt/.", "link", "agent/../link", s.mountpoint} {
		s.mount()
		s.run("-u", path).ok(t)
		s.requireUnmounted()
	}
	// umount(8) and fusermount3 do as well.
	s.mount()
	require.NoError(t, unmount(s.mountpoint, false))
	s.requireUnmounted()
}

func TestUnmountRefusals(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	requireStatus(t, exitUnmount, s.run("-u", s.mountpoint), "nothing is mounted", s.mountpoint, "findmnt -t fuse.sessionfs")
	requireStatus(t, exitUnmount, s.run("-u", "absent/mnt"), "absent/mnt")
	requireStatus(t, exitUnmount, s.run("-u", "/proc"), "/proc", "type proc", "umount /proc")
	requireStatus(t, exitUsage, s.run("-u"), "MOUNTPOINT")
	requireStatus(t, exitUsage, s.run("-z", s.mountpoint), "-z")
}

// What is not the mount point itself, but belongs to a mount, leads to it.
func TestUnmountMistaken(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		s.mount()
		wayOut := "sessionfs -u " + s.mountpoint
		session := filepath.Join(s.mountpoint, sessionPath)
		requireStatus(t, exitUnmount, s.run("-u", session), session, wayOut)
		requireStatus(t, exitUnmount, s.run("-u", s.mountpoint+"/recent"), "/recent", wayOut)
		requireStatus(t, exitUnmount, s.run("-u", s.source), s.source, "SOURCE", wayOut)
		s.requireMounted()
		s.kill()
		requireStatus(t, exitUnmount, s.run("-u", session), session, wayOut)
		s.unmount()
	})
}

// Without /etc/mtab fusermount3 mounts, but does not unmount: a user is told what root can do, and root needs none of it.
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

// Only root unmounts what another user mounted.
func TestUnmountForeign(t *testing.T) {
	needsRoot(t, "needs two users, so root")
	s := newMountable(t, user{"user", nobody})
	s.mount()
	other := *s
	other.user.uid = nobody - 1
	requireStatus(t, exitUnmount, other.run("-u", s.mountpoint), "user 65534", "sudo sessionfs -u "+s.mountpoint)
	readable := agentTree(t, "sessions/")
	require.NoError(t, os.Chmod(readable, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(readable), 0o755))
	requireStatus(t, exitMountpoint, other.run(readable, s.mountpoint), "user 65534", "already", s.mountpoint)
	root := *s
	root.user.uid = 0
	requireStatus(t, exitMountpoint, root.run(s.source, s.mountpoint), "user 65534", "already", s.mountpoint)
	s.kill()
	requireStatus(t, exitMountpoint, root.run(s.source, s.mountpoint), "user 65534", "dead", s.mountpoint)
	_, mounted := mountAt(s.mountpoint)
	require.True(t, mounted, "somebody else's dead mount stays")
	require.Zero(t, root.run("-u", s.mountpoint).code)
	s.requireUnmounted()
}

// A dead mount is seen as such at once, though the kernel still remembers its attributes, and is
// unmounted with -u; also through a symlink.
func TestDeadMountUnmount(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		link := filepath.Join(s.dir, "link")
		require.NoError(t, os.Symlink("mnt", link))
		pid := s.mount()
		s.hold()
		require.NoError(t, unix.Kill(pid, unix.SIGKILL))
		require.True(t, eventually(func() bool { return len(daemons(s.dir)) == 0 }))
		s.run(s.source, link).ok(t)
		s.requireMounted()
		s.kill()
		s.run("-u", link).ok(t)
		s.requireUnmounted()
	})
}

// TestEndEarlier: a daemon of an earlier version, which tells how many new sessions it has in memory alone, is ended with
// SIGTERM, and waited for: then they are on disk. This version tells no such number.
func TestEndEarlier(t *testing.T) {
	var earlier, now told
	require.NoError(t, json.Unmarshal([]byte(`{"version":"1","since":"2026-01-01T00:00:00Z","new":0}`), &earlier))
	require.NotNil(t, earlier.Unsaved)
	text, err := json.Marshal(told{Version: "2"})
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &now))
	require.Nil(t, now.Unsaved)

	saved := filepath.Join(t.TempDir(), "saved")
	daemon := exec.Command("sh", "-c", `trap 'sleep 0.3; echo > "$1"; exit' TERM; echo; while :; do sleep 0.01; done`, "sh", saved)
	out, err := daemon.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, daemon.Start())
	_, err = out.Read(make([]byte, 1))
	require.NoError(t, err)
	end := endEarlier(daemon.Process.Pid)
	end()
	require.FileExists(t, saved)
	require.NoError(t, daemon.Wait())
	end() // which changes nothing
	endEarlier(0)()
}
