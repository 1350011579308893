package procfs

import (
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// isOneOf reports whether a link in /proc leads to one of the files. DONT_SYNC answers from what the kernel
// remembers: a descriptor on a network share that is away, or in our own mount, must not hold us up.
func isOneOf(link string, files []storage.Token) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	for err == unix.EINTR {
		err = unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	}
	id := storage.Token{Device: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	return err == nil && slices.ContainsFunc(files, id.SameObject)
}
