//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
)

// Each refusal has its exit status and names the path.
func TestRefusals(t *testing.T) {
	s := newStore(t, user{"self", os.Geteuid()})
	symlink := func(target, name string) {
		t.Helper()
		require.NoError(t, os.Symlink(target, filepath.Join(s.dir, name)))
	}
	s.mkdir("full/thing")
	s.mkdir("more/new-session")
	s.mkdir("more/thing")
	s.mkdir("disk/blobs/inner")
	s.mkdir("agent/inner/empty")
	s.mkdir("around/agent")
	symlink("../disk/blobs", "agent/blobs")
	for _, dir := range []string{"disk2/archive/sessions/inner", "disk3/terminals/inner", "disk4", "disk5/-srv/inner", "home/.claude", "pi's/own/inner",
		"home/.pi/agent/sessions", ".omp/run"} {
		s.mkdir(dir)
	}
	symlink("../disk2/archive", "agent/archive")
	symlink("../disk3/terminals", "agent/terminal-sessions")
	symlink("../../disk5", "home/.claude/projects")
	symlink("../../disk4/later", "around/agent/sessions")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "home/.pi/agent/settings.json"), []byte(`{"sessionDir":"`+s.dir+`/pi's/own"}`), 0o600))
	symlink("agent/inner/empty", "into")
	symlink("agent", "source")
	symlink("loop", "loop")
	symlink("nowhere", "dangling")
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "file"), nil, 0o600))

	for _, c := range []struct {
		name               string
		source, mountpoint string
		status             int
		say                []string
	}{
		{"mount point missing", "agent", "absent", exitMountpoint, []string{"absent", "does not exist", "mkdir"}},
		{"its parent missing", "agent", "absent/mnt", exitMountpoint, []string{"absent/mnt", "does not exist"}},
		{"dangling symlink", "agent", "dangling", exitMountpoint, []string{"nowhere", "does not exist"}},
		{"symlink loop", "agent", "loop", exitMountpoint, []string{"loop"}},
		{"a file", "agent", "file", exitMountpoint, []string{"file", "not a directory"}},
		{"below a file", "agent", "file/x", exitMountpoint, []string{"file"}},
		{"not empty", "agent", "full", exitMountpoint, []string{"full", "not empty", "thing", "move that away", "-o nonempty"}},
		{"new-session and more", "agent", "more", exitMountpoint, []string{"more", "not empty", "move that away"}},
		{"SOURCE itself", "agent", "agent", exitMountpoint, []string{"lies in SOURCE"}},
		{"in SOURCE", "agent", "agent/inner/empty", exitMountpoint, []string{"lies in SOURCE"}},
		{"in SOURCE through a symlink", "source", "into", exitMountpoint, []string{"lies in SOURCE"}},
		{"in the blobs on another disk", "agent", "disk/blobs/inner", exitMountpoint, []string{"lies in SOURCE", "blobs"}},
		{"around the blobs on another disk", "agent", "disk", exitMountpoint, []string{"hide SOURCE", "blobs"}},
		{"in the archive on another disk", "agent", "disk2/archive/sessions/inner", exitMountpoint, []string{"lies in SOURCE", "archive"}},
		{"around the archive on another disk", "agent", "disk2", exitMountpoint, []string{"hide SOURCE", "archive"}},
		{"in the breadcrumbs on another disk", "agent", "disk3/terminals/inner", exitMountpoint, []string{"lies in SOURCE", "terminal-sessions"}},
		{"around what is not there yet", "around/agent", "disk4", exitMountpoint, []string{"hide SOURCE", "sessions"}},
		{"in pi's own place of sessions", "home/.pi/agent", "pi's/own/inner", exitMountpoint, []string{"lies in SOURCE", "own"}},
		{"around pi's own place of sessions", "home/.pi/agent", "pi's", exitMountpoint, []string{"hide SOURCE", "own"}},
		{"in another agent's sessions on another disk", "home/.claude", "disk5/-srv/inner", exitMountpoint, []string{"lies in SOURCE", "projects"}},
		{"around the leases of clients", "agent", ".omp/run", exitMountpoint, []string{"hide SOURCE", "session-owners"}},
		{"around SOURCE", "around/agent", "around", exitMountpoint, []string{"hide SOURCE"}},
		{"the root", "agent", "/", exitMountpoint, []string{"hide SOURCE"}},
		{"SOURCE missing", "absent", "mnt", exitSource, []string{"absent", "does not exist"}},
		{"SOURCE a file", "file", "mnt", exitSource, []string{"file", "not a directory"}},
		{"SOURCE a loop", "loop", "mnt", exitSource, []string{"loop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, front := range []string{"-f", "--foreground=false"} {
				requireStatus(t, c.status, s.run(front, c.source, c.mountpoint), c.say...)
			}
		})
	}
	r := s.run("-o", "blobs="+s.dir+"/disk/blobs", "postgres://nobody@localhost:1/none", "disk/blobs/inner")
	requireStatus(t, exitMountpoint, r, "lies in SOURCE", "blobs")
	r = s.run("-o", "prices=file", "agent", "mnt")
	requireStatus(t, exitUsage, r, "-o prices", s.dir+"/file", "not a JSON object")
	for _, args := range [][]string{{}, {"a", "b", "c"}, {"-o", "bogus", "agent", "mnt"}, {"--bogus"}, {"--demo", "a", "b"}} {
		requireStatus(t, exitUsage, s.run(args...), "sessionfs --help")
	}
	s.requireUnmounted()
}

// What an ordinary user may not read, or not mount upon.
func TestRefusalsPermission(t *testing.T) {
	who := user{"user", nobody}
	if os.Geteuid() != 0 {
		who.uid = os.Geteuid()
	}
	s := newStore(t, who)
	private := s.mkdir("private")
	for _, mode := range []os.FileMode{0o000, 0o300, 0o600} {
		require.NoError(t, os.Chmod(private, mode))
		requireStatus(t, exitSource, s.run(private, s.mountpoint), private, "permission denied")
	}
	require.NoError(t, os.Chmod(private, 0o500))
	requireStatus(t, exitMountpoint, s.run(s.source, private), private, "cannot be written")
	require.NoError(t, os.Chmod(private, 0o700))
	if os.Geteuid() == 0 {
		shared := s.mkdir("shared")
		require.NoError(t, os.Chown(shared, 0, 0))
		require.NoError(t, os.Chmod(shared, 0o777|os.ModeSticky))
		requireStatus(t, exitMountpoint, s.run(s.source, shared), shared, "sticky")
	}
}

// A live mount is not mounted over.
func TestAlreadyMounted(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		s.mount()
		requireStatus(t, exitMountpoint, s.run(s.source, s.mountpoint), "already mounted", s.mountpoint, "-u")
		requireStatus(t, exitMountpoint, s.run("--demo", s.mountpoint), "already mounted")
		s.requireMounted()
		s.unmount()
		demos := glob(t, filepath.Join(testRoot, "sessionfs-demo-*"))
		require.Empty(t, demos)
	})
}

// SOURCE bound to another place is still SOURCE.
func TestRefusalBindMount(t *testing.T) {
	needsMounts(t, "needs to make a bind mount, so root")
	s := newStore(t, user{"root", 0})
	s.mkdir("agent/empty")
	bound := s.mkdir("bound")
	r := s.exec("unshare", "-m", "sh", "-c", `mount --bind "$1" "$2" && exec "$3" "$1" "$2/empty"`, "sh", s.source, bound, program)
	requireStatus(t, exitMountpoint, r, "lies in SOURCE")
}

// TestLinksToWhatIsNotTheOwners: root's daemon does not follow the links in a user's SOURCE to what is not his.
func TestLinksToWhatIsNotTheOwners(t *testing.T) {
	t.Parallel()
	needsRoot(t, "needs two users, so root")
	for _, c := range []struct {
		name, link string
		uid        int // of the link's target
		refused    bool
	}{
		{"root's", "sessions", 0, true},
		{"in root's, not there", "sessions", 0, true},
		{"root's blobs", "blobs", 0, true},
		{"root's breadcrumbs", "terminal-sessions", 0, true},
		{"the owner's", "sessions", nobody, false},
		{"in the owner's, not there", "sessions", nobody, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, user{"user", nobody})
			requireFuse(t, user{"root", 0})
			target := filepath.Join(s.dir, "elsewhere")
			require.NoError(t, os.Mkdir(target, 0o755))
			require.NoError(t, os.Chown(target, c.uid, c.uid))
			if strings.HasSuffix(c.name, "not there") {
				target = filepath.Join(target, "new")
			}
			link := filepath.Join(s.source, c.link)
			require.NoError(t, os.RemoveAll(link))
			require.NoError(t, os.Symlink(target, link))
			root := *s
			root.user.uid = 0
			r := root.run(s.source, s.mountpoint)
			if !c.refused {
				require.Zero(t, r.code, r)
				require.Zero(t, root.run("-u", s.mountpoint).code)
				return
			}
			requireStatus(t, exitSource, r, link, target, "65534", "mount as that user")
			_, mounted := fs.MountAt(s.mountpoint)
			require.False(t, mounted)
		})
	}
}
