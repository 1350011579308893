package mountopts

import "golang.org/x/sys/unix"

// KernelOptions returns the Options and DirectMountFlags of fuse.MountOptions, for fusermount3 and
// mount(2).
//
// nosuid and nodev are always on: nothing in the mount needs the opposite. So is
// default_permissions: with allow_root the mode of the root directory keeps all others out.
func (o Options) KernelOptions() (options []string, directFlags uintptr) {
	options = []string{"default_permissions", "nosuid", "nodev"}
	directFlags = unix.MS_NOSUID | unix.MS_NODEV
	if o.ReadOnly || o.Redact {
		options, directFlags = append(options, "ro"), directFlags|unix.MS_RDONLY
	}
	if o.NoExec {
		options, directFlags = append(options, "noexec"), directFlags|unix.MS_NOEXEC
	}
	return options, directFlags
}
