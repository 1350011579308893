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

// TestRefusalsPermission: what an ordinary user may not read, or not mount upon.
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

// TestRefusalBindMount: SOURCE bound to another place is still SOURCE.
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
