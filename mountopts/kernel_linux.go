package mountopts

import "golang.org/x/sys/unix"

// KernelOptions returns the Options and DirectMountFlags of fuse.MountOptions. privileged says
// that mount(2) itself will be tried. The two ways to mount differ: mount(2) takes noatime and dirsync only as flags
// (as strings they are EINVAL), fusermount3 only as strings, and an option that either does not know fails the mount.
//
// nosuid and nodev are always on: nothing in the mount needs the opposite. So is
// default_permissions: with allow_root the mode of the root directory keeps all others out.
func (o Options) KernelOptions(privileged bool) (options []string, directFlags uintptr) {
	options = []string{"default_permissions", "nosuid", "nodev"}
	directFlags = unix.MS_NOSUID | unix.MS_NODEV
	for _, k := range []struct {
		on       bool
		name     string
		flag     uintptr
		flagOnly bool
	}{
		{o.ReadOnly, "ro", unix.MS_RDONLY, false},
		{o.NoExec, "noexec", unix.MS_NOEXEC, false},
		{o.NoAtime, "noatime", unix.MS_NOATIME, true},
		{o.DirSync, "dirsync", unix.MS_DIRSYNC, true},
	} {
		if !k.on {
			continue
		}
		directFlags |= k.flag
		if !privileged || !k.flagOnly {
			options = append(options, k.name)
		}
	}
	return options, directFlags
}
