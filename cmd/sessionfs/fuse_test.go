//go:build linux

package main

import (
	"os"
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
		{"allow_other", nobody, `mount --bind /dev/null /etc/fuse.conf; run "$@"`, []string{"-o", "allow_other"}, []string{"user_allow_other", "/etc/fuse.conf"}},
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
		"$1" -o noatime,ro "$2" "$3"; grep " $3 " /proc/self/mountinfo; "$1" -u "$3"`, s.source, s.mountpoint)
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "ro,nosuid,nodev,noatime")
}

// allow_other shows other users what the modes allow.
func TestAllowOther(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs two users, so root")
	}
	s := newStore(t, user{"root", 0})
	requireFuse(t, s.user)
	s.mount()
	other := *s
	other.user.uid = nobody
	require.NotZero(t, other.exec("ls", s.mountpoint).code)
	require.Zero(t, s.run("-u", s.mountpoint).code)
	s.requireUnmounted()
	s.mount("-o", "allow_other")
	r := s.exec("grep", " "+s.mountpoint+" ", "/proc/self/mountinfo")
	require.Contains(t, r.stdout, "allow_other")
	require.Contains(t, r.stdout, "default_permissions")
	require.NotZero(t, other.exec("cat", s.mountpoint+"/"+sessionPath).code, "a 0600 file")
}
