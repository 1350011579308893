package nodes

import "golang.org/x/sys/unix"

// stacked reports whether a file is on a file system that is stacked on another one. The kernel refuses these for
// passthrough. After one refusal go-fuse stops using passthrough, also for files that are open with it; these could then
// not be opened again.
func stacked(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return true
	}
	switch st.Type {
	case unix.OVERLAYFS_SUPER_MAGIC, unix.ECRYPTFS_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC:
		return true
	}
	return false
}
