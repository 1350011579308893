//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksToWhatIsNotTheOwners: root's daemon does not follow the links in a user's SOURCE to what is not his.
func TestLinksToWhatIsNotTheOwners(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs two users, so root")
	}
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
			_, mounted := mountAt(s.mountpoint)
			require.False(t, mounted)
		})
	}
}
