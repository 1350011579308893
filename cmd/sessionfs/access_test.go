//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLinksThatTheOwnerMayNotFollow: root's daemon does not follow the links in a user's SOURCE to where he may not go.
func TestLinksThatTheOwnerMayNotFollow(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs two users, so root")
	}
	for _, c := range []struct {
		name, link string
		mode       os.FileMode // of the directory above the link's target
		refused    bool
	}{
		{"closed", "sessions", 0o700, true},
		{"closed, to what is not there", "sessions", 0o700, true},
		{"closed, blobs", "blobs", 0o700, true},
		{"closed, breadcrumbs", "terminal-sessions", 0o700, true},
		{"open", "sessions", 0o755, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, user{"user", nobody})
			requireFuse(t, user{"root", 0})
			closed := filepath.Join(s.dir, "root")
			require.NoError(t, os.MkdirAll(filepath.Join(closed, "secret"), 0o755))
			require.NoError(t, os.Chmod(closed, c.mode))
			target := filepath.Join(closed, "secret")
			if c.name == "closed, to what is not there" {
				target = filepath.Join(closed, "new")
			}
			link := filepath.Join(s.source, c.link)
			require.NoError(t, os.RemoveAll(link))
			require.NoError(t, os.Symlink(target, link))
			root := *s
			root.user.uid = 0
			r := root.run("-o", "allow_other", s.source, s.mountpoint)
			if !c.refused {
				require.Zero(t, r.code, r)
				require.Zero(t, root.run("-u", s.mountpoint).code)
				return
			}
			requireStatus(t, exitSource, r, link, target, "65534", "mount as that user")
			_, mounted := mountAt(s.mountpoint)
			require.False(t, mounted)
			require.NoDirExists(t, filepath.Join(closed, "new"))
		})
	}
}

// TestAllowOtherOfAnOrdinaryUser: a user's own daemon, which can become nobody else, lets others in as far as the modes of
// the files and of the directories above do.
func TestAllowOtherOfAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 || !mayMount() {
		t.Skip("needs two users and a mount namespace, so root")
	}
	s := newStore(t, user{"user", nobody})
	requireFuse(t, s.user)
	conf := filepath.Join(s.dir, "fuse.conf")
	require.NoError(t, os.WriteFile(conf, []byte("user_allow_other\n"), 0o644))
	for _, c := range []struct {
		name    string
		prepare string
		sees    bool
	}{
		{"open", "", true},
		{"a private session", `chmod 600 "$file"`, false},
		{"a closed project", `chmod 700 "${file%/*}"`, false},
		{"closed above SOURCE", `chmod 750 "$2/.."`, false},
		{"a list above SOURCE", `setfacl -m u:2001:--- "$2/.."`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, user{"user", nobody})
			r := s.inNamespace(`mount --bind "`+conf+`" /etc/fuse.conf
				file=$4
				chmod -R a+rX "$2"; chmod 755 "$3"
				`+c.prepare+`
				(run "$1" -o allow_other "$2" "$3")
				other() { setpriv --reuid 2001 --regid 2001 --clear-groups "$@"; }
				cat "$3/$5" > /dev/null # root
				setpriv --reuid 65534 --regid 65534 --clear-groups cat "$3/${5%.jsonl}/context.json"
				for f in "$5" "${5%.jsonl}/context.json" "${5%.jsonl}/entries/aaaaaaaa.json"; do
					if other cat "$3/$f" 2>/dev/null | grep hello; then echo saw; fi
				done
				for f in index.jsonl recent/ by-id/ history/; do
					if other ls "$3/$f" > /dev/null 2>&1 && other cat "$3/$f" > /dev/null 2>&1; then echo "saw $f"; fi
				done
				(run "$1" -u "$3")`,
				s.source, s.mountpoint, filepath.Join(s.source, sessionPath), sessionPath)
			require.Zero(t, r.code, r)
			require.Contains(t, r.stdout, "hello", "the owner")
			require.Equal(t, c.sees, strings.Contains(r.stdout, "saw\n"), r)
			require.NotContains(t, r.stdout, "saw index.jsonl")
			require.NotContains(t, r.stdout, "saw recent")
		})
	}
}
