//go:build linux

package fs

import (
	"errors"
	iofs "io/fs"
	"os"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

const (
	fuseDevice = "/dev/fuse"
	fuseConf   = "/etc/fuse.conf"
)

// fuseProblem names a thing that is missing for mounting, "" for none. It is called after the failure,
// so that nothing is refused that would have worked (a fusermount3 that asks a helper outside of a
// container, for example).
func fuseProblem(o mountopts.Options) string {
	reason := deviceProblem()
	if reason != "" {
		return reason
	}
	if mayMount() { // fusermount3 is not needed
		return ""
	}
	isRoot := os.Geteuid() == 0
	if isRoot {
		return "This is root without the right to mount, as usual in a container: allow it CAP_SYS_ADMIN and " +
			fuseDevice + " (docker run --cap-add SYS_ADMIN --device " + fuseDevice + ")."
	}
	bin, err := fusermount()
	if err != nil {
		return "Users other than root need fusermount3: install the package fuse3 (apt install fuse3, " +
			"dnf install fuse3)."
	}
	nnp, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && nnp == 1 {
		return "This process may not gain privileges (no_new_privs: a sandbox, a container, " +
			"NoNewPrivileges= in systemd), so " +
			bin + " cannot mount for it."
	}
	info, err := os.Stat(bin)
	if err == nil && info.Mode()&iofs.ModeSetuid == 0 {
		return bin + " is not set-uid root, so users other than root may not be able to mount: " +
			"reinstall the package fuse3."
	}
	if o.AllowRoot {
		return "-o allow_root needs the line 'user_allow_other' in " + fuseConf + ", which root must write there; " +
			"or leave allow_root out."
	}
	return ""
}

// deviceProblem names a fault of /dev/fuse, "" for none. fusermount3 opens it as the user.
func deviceProblem() string {
	f, err := os.OpenFile(fuseDevice, os.O_RDWR, 0)
	switch {
	case err == nil:
		f.Close()
		return ""
	case errors.Is(err, iofs.ErrNotExist):
		return fuseDevice + " does not exist: load the kernel module (modprobe fuse) and install the package fuse3; " +
			"a container needs to be given the device (docker run --device " + fuseDevice + ")."
	case errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV):
		return fuseDevice + " is there but the kernel has no FUSE: load the module (modprobe fuse)."
	case errors.Is(err, iofs.ErrPermission):
		return fuseDevice + " may not be opened (" + err.Error() + "): its mode should be 0666, " +
			"and a container needs to be allowed the device."
	}
	return fuseDevice + " cannot be opened: " + err.Error() + "."
}
