//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inNamespace runs the program in a mount namespace that a shell script prepares; it says `run` where the
// program is to be started, as the store's user.
func (s *store) inNamespace(script string, args ...string) result {
	s.t.Helper()
	root := *s
	root.user.uid = 0
	prefix := ""
	if s.user.uid != 0 {
		prefix = "setpriv --reuid 65534 --regid 65534 --clear-groups "
	}
	script = "set -e\nrun() { exec " + prefix + "\"$@\"; }\n" + script
	return root.exec("unshare", append([]string{"-m", "sh", "-c", script, "sh", program}, args...)...)
}

// What is missing for FUSE is told apart.
func TestFuseProblems(t *testing.T) {
	if os.Geteuid() != 0 || !mayMount() {
		t.Skip("takes devices and programs away in a mount namespace, so root")
	}
	const noDevice = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3\n"
	const noFusermount = `for p in $(command -v fusermount3 fusermount || true) /bin/fusermount3 /bin/fusermount; do
		if [ -e "$p" ]; then mount --bind /dev/null "$p"; fi
	done
	`
	for _, c := range []struct {
		name   string
		uid    int
		script string
		args   []string
		say    []string
	}{
		{"no device", 0, noDevice + `run "$@"`, nil, []string{"/dev/fuse does not exist", "modprobe fuse"}},
		{"no device, user", nobody, noDevice + `run "$@"`, nil, []string{"/dev/fuse does not exist", "modprobe fuse"}},
		{
			"device forbidden", nobody,
			noDevice + "mknod -m 600 /dev/fuse c 10 229\n" + `run "$@"`, nil,
			[]string{"/dev/fuse may not be opened", "0666"},
		},
		{"no fusermount3", nobody, noFusermount + `run "$@"`, nil, []string{"package fuse3"}},
		{"allow_root", nobody, `mount --bind /dev/null /etc/fuse.conf; run "$@"`, []string{"-o", "allow_root"}, []string{"user_allow_other", "/etc/fuse.conf"}},
		{"no_new_privs", nobody, `run setpriv --no-new-privs "$@"`, nil, []string{"no_new_privs"}},
		{"no CAP_SYS_ADMIN", 0, `run setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$@"`, nil, []string{"CAP_SYS_ADMIN"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, user{"", c.uid})
			r := s.inNamespace(c.script, append(c.args, s.source, s.mountpoint)...)
			requireStatus(t, exitFuse, r, append(c.say, s.mountpoint)...)
		})
	}
}

// Root needs no fusermount3, neither to mount nor to unmount.
func TestRootWithoutFusermount(t *testing.T) {
	if os.Geteuid() != 0 || !mayMount() {
		t.Skip("takes a program away in a mount namespace, so root")
	}
	s := newStore(t, user{"root", 0})
	requireFuse(t, s.user)
	r := s.inNamespace(`for p in $(command -v fusermount3 fusermount || true); do mount --bind /dev/null "$p"; done
		"$1" -o noexec,ro "$2" "$3"; grep " $3 " /proc/self/mountinfo; "$1" -u "$3"`, s.source, s.mountpoint)
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "ro,nosuid,nodev,noexec")
}

// TestOtherUsers: nobody but the user who mounts gets in, and root only with allow_root, whatever the modes allow.
func TestOtherUsers(t *testing.T) {
	if os.Geteuid() != 0 || !mayMount() {
		t.Skip("needs several users and a mount namespace, so root")
	}
	conf := filepath.Join(t.TempDir(), "fuse.conf")
	require.NoError(t, os.WriteFile(conf, []byte("user_allow_other\n"), 0o644))
	for options, who := range map[string]string{"rw": "65534", "allow_root": "0 65534"} {
		t.Run(options, func(t *testing.T) {
			s := newStore(t, user{"user", nobody})
			requireFuse(t, s.user)
			r := s.inNamespace(`mount --bind `+conf+` /etc/fuse.conf
				chmod -R a+rX "$2"; chmod 755 "$3"
				(run "$1" -o $4 "$2" "$3")
				for uid in 0 2001 65534; do
					for path in "" sessions "$5"; do
						as="setpriv --reuid $uid --regid 65534 --clear-groups"
						if $as ls "$3/$path" > /dev/null 2>&1; then echo "$uid:$path"; fi
					done
				done
				(run "$1" -u "$3")`, s.source, s.mountpoint, options, sessionPath)
			require.Zero(t, r.code, r)
			want := ""
			for _, uid := range strings.Fields(who) {
				want += uid + ":\n" + uid + ":sessions\n" + uid + ":" + sessionPath + "\n"
			}
			require.Equal(t, want, r.stdout, r)
		})
	}
	s := newStore(t, user{"user", nobody})
	requireStatus(t, exitUsage, s.run("-o", "allow_other", s.source, s.mountpoint), "each user mounts SOURCE for himself", "allow_root")
}
