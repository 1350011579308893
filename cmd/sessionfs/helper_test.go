//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMount8: mount(8) of type fuse.sessionfs, by hand and from fstab, through mount.fuse3.
func TestMount8(t *testing.T) {
	needsRoot(t, "mount(8) is root's")
	needsTools(t, "mount.fuse3")
	s := newMountable(t, user{"root", 0})
	s.installInPath()
	table := func(name, options string) string {
		file := filepath.Join(s.dir, name)
		line := s.source + " " + s.mountpoint + " fuse.sessionfs " + options + " 0 0\n"
		require.NoError(t, os.WriteFile(file, []byte(line), 0o600))
		return file
	}
	fstab := table("fstab", "rw,noauto,nofail,user,_netdev,noatime,x-systemd.automount,x-systemd.idle-timeout=60,x-gvfs-show,comment=x,live=allow")
	atBoot := table("fstab.boot", "defaults,nofail,idle=1h,loglevel=warn,log-file="+s.dir+"/log,auto_unmount,kernel_cache,entry_timeout=5")
	for _, args := range [][]string{
		{"mount", "-a", "-T", atBoot},
		{"mount", "-t", "fuse.sessionfs", s.source, s.mountpoint},
		{"mount", "-v", "-n", "-t", "fuse.sessionfs", "-o", "ro,nosuid,nodev,noexec,relatime", s.source, s.mountpoint},
		{"mount", "-t", "fuse", "sessionfs#" + s.source, s.mountpoint},
		{"mount.fuse3", "sessionfs#" + s.source, s.mountpoint, "-o", "rw,dev,suid"},
		{"mount", "-T", fstab, s.mountpoint},
	} {
		r := s.exec(args[0], args[1:]...)
		require.Zero(t, r.code, "%s: %s", args, r)
		s.requireMounted()
		e, _ := fs.MountAt(s.mountpoint)
		require.Equal(t, []any{s.mountpoint, "fuse.sessionfs", s.source, 0}, []any{e.Mountpoint, e.Type, e.Source, e.User})
		require.Zero(t, s.exec("umount", s.mountpoint).code)
		s.requireUnmounted()
	}
	r := s.exec("mount", "-t", "fuse.sessionfs", "-o", "bogus", s.source, s.mountpoint)
	require.NotZero(t, r.code)
	require.Contains(t, r.stderr, "bogus")
}

// installInPath puts the program where mount(8), which passes no PATH on, has its helpers look for it.
func (s *store) installInPath() {
	s.t.Helper()
	if os.Getenv(namespaceEnv) == "" {
		skip(s.t, "without a mount namespace the program is not put into /usr/local/bin")
	}
	bin := s.mkdir("bin")
	require.NoError(s.t, os.Symlink(program, filepath.Join(bin, "sessionfs")))
	const place = "/usr/local/bin"
	require.NoError(s.t, unix.Mount(bin, place, "", unix.MS_BIND, ""))
	s.t.Cleanup(func() { _ = unix.Unmount(place, unix.MNT_DETACH) })
}

// TestMountHelper: called as mount.sessionfs it follows mount(8)'s rules for helpers.
func TestMountHelper(t *testing.T) {
	forEachUser(t, func(t *testing.T, s *store) {
		helper := filepath.Join(s.dir, "mount.sessionfs")
		require.NoError(t, os.Symlink(program, helper))
		r := s.exec(helper, s.source, s.mountpoint, "-f", "-o", "rw") // fake
		require.Zero(t, r.code, r)
		_, mounted := fs.MountAt(s.mountpoint)
		require.False(t, mounted)

		s.exec(helper, s.source, s.mountpoint, "-s", "-n", "-v", "-t", "fuse.sessionfs", "-o", "rw,nosuid,user=nobody,bogus").ok(t)
		s.requireMounted()
		require.Equal(t, helperMount, s.exec(helper, s.source, s.mountpoint).code)
		require.Equal(t, helperUsage, s.exec(helper, s.source, s.mountpoint, "-o", "bogus").code)
		require.Equal(t, helperUsage, s.exec(helper, s.mountpoint).code)
		s.unmount()
	})
}

// TestAutomount: under x-systemd.automount, autofs lets only systemd's process group reach the mount point until the mount
// is there; whoever else touches it waits. Mounting from a session of one's own would wait for itself.
func TestAutomount(t *testing.T) {
	needsMounts(t, "mounts an autofs, so root")
	s := newMountable(t, user{"root", 0})
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fd := int(w.Fd())
	pgrp := unix.Getpgrp()
	options := fmt.Sprintf("fd=%d,pgrp=%d,minproto=5,maxproto=5,direct", fd, pgrp)
	if err := unix.Mount("automount", s.mountpoint, "autofs", 0, options); err != nil {
		w.Close()
		t.Skip("this kernel has no autofs: ", err)
	}
	w.Close()
	autofs, err := os.Open(s.mountpoint)
	require.NoError(t, err)
	defer autofs.Close()

	visitor := s.command("setsid", "-w", "cat", filepath.Join(s.mountpoint, sessionPath))
	done := make(chan result, 1)
	go func() { done <- s.finish(visitor) }()
	packet := make([]byte, 512) // struct autofs_v5_packet: version, type, token, …
	_, err = r.Read(packet)
	require.NoError(t, err)
	require.Zero(t, s.run(s.source, s.mountpoint).code)
	const autofsReady = 0x9360 // AUTOFS_IOC_READY
	require.NoError(t, unix.IoctlSetInt(int(autofs.Fd()), autofsReady, int(binary.NativeEndian.Uint32(packet[8:]))))
	got := <-done
	require.Equal(t, sessionText, got.stdout, got)
	require.Zero(t, s.run("-u", s.mountpoint).code)
}

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

// Scripts that take away parts of FUSE, in a mount namespace.
const noDevice = "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3\n"
const noFusermount = `for p in $(command -v fusermount3 fusermount || true) /bin/fusermount3 /bin/fusermount; do
	if [ -e "$p" ]; then mount --bind /dev/null "$p"; fi
done
`

// fuseProblems are things that are missing for FUSE, each with the user and the script of a mount without it, and the
// words of the refusal.
var fuseProblems = []struct {
	name   string
	uid    int
	script string
	args   []string
	say    []string
}{
	{
		name:   "no device",
		script: noDevice + `run "$@"`,
		say:    []string{"/dev/fuse does not exist", "modprobe fuse"},
	},
	{
		name:   "no device, user",
		uid:    nobody,
		script: noDevice + `run "$@"`,
		say:    []string{"/dev/fuse does not exist", "modprobe fuse"},
	},
	{
		name:   "device forbidden",
		uid:    nobody,
		script: noDevice + "mknod -m 600 /dev/fuse c 10 229\n" + `run "$@"`,
		say:    []string{"/dev/fuse may not be opened", "0666"},
	},
	{
		name: "broken fusermount3",
		uid:  nobody,
		script: `f=$(mktemp); printf '#!/bin/sh\necho "fusermount3: cannot say why" >&2; exit 1\n' > $f; chmod 4755 $f
			for p in $(command -v fusermount3 fusermount); do mount --bind $f "$p"; done; rm $f; run "$@"`,
		say: []string{"fusermount3: cannot say why", "exited with code", "FUSE is broken here; 'sessionfs help nfs'"},
	},
	{
		name:   "no fusermount3",
		uid:    nobody,
		script: noFusermount + `run "$@"`,
		say:    []string{"package fuse3"},
	},
	{
		name:   "allow_root",
		uid:    nobody,
		script: `mount --bind /dev/null /etc/fuse.conf; run "$@"`,
		args:   []string{"-o", "allow_root"},
		say:    []string{"user_allow_other", "/etc/fuse.conf"},
	},
	{
		name:   "no_new_privs",
		uid:    nobody,
		script: `run setpriv --no-new-privs "$@"`,
		say:    []string{"no_new_privs"},
	},
	{
		name:   "no CAP_SYS_ADMIN",
		script: `run setpriv --bounding-set -sys_admin --inh-caps -sys_admin "$@"`,
		say:    []string{"CAP_SYS_ADMIN"},
	},
}

// TestFuseProblems: what is missing for FUSE is told apart.
func TestFuseProblems(t *testing.T) {
	needsMounts(t, "takes devices and programs away in a mount namespace, so root")
	for _, c := range fuseProblems {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t, user{uid: c.uid})
			r := s.inNamespace(c.script, append(c.args, s.source, s.mountpoint)...)
			requireStatus(t, exitFuse, r, append(c.say, s.mountpoint)...)
		})
	}
}

// TestRootWithoutFusermount: root needs no fusermount3, neither to mount nor to unmount.
func TestRootWithoutFusermount(t *testing.T) {
	needsMounts(t, "takes a program away in a mount namespace, so root")
	s := newMountable(t, user{"root", 0})
	r := s.inNamespace(`for p in $(command -v fusermount3 fusermount || true); do mount --bind /dev/null "$p"; done
		"$1" -o noexec,ro "$2" "$3"; grep " $3 " /proc/self/mountinfo; "$1" -u "$3"`, s.source, s.mountpoint)
	require.Zero(t, r.code, r)
	require.Contains(t, r.stdout, "ro,nosuid,nodev,noexec")
}

// TestOtherUsers: nobody but the user who mounts gets in, and root only with allow_root, whatever the modes allow.
func TestOtherUsers(t *testing.T) {
	needsMounts(t, "needs several users and a mount namespace, so root")
	conf := filepath.Join(t.TempDir(), "fuse.conf")
	require.NoError(t, os.WriteFile(conf, []byte("user_allow_other\n"), 0o644))
	for options, who := range map[string]string{"rw": "65534", "allow_root": "0 65534"} {
		t.Run(options, func(t *testing.T) {
			s := newMountable(t, user{"user", nobody})
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
