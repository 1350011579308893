package proc

import (
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// isOneOf reports whether a link in /proc leads to one of the files. With AT_STATX_DONT_SYNC the
// kernel answers from its cache: a descriptor on an unreachable network share, or in our own mount,
// must not block us.
func isOneOf(link string, files []storage.Token) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	for err == unix.EINTR {
		err = unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	}
	id := storage.Token{Device: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	return err == nil && slices.ContainsFunc(files, id.SameObject), err
}
