package proc

import (
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// isOneOf reports whether a link in /proc leads to one of the files. With AT_STATX_DONT_SYNC the
// kernel answers from its cache: a descriptor on an unreachable network share, or in our own mount,
// must not block us. The error is of the call, such as fs.ErrPermission.
func isOneOf(link string, files []storage.Token) (bool, error) {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	for err == unix.EINTR {
		err = unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	}
	if err != nil {
		return false, err
	}
	device := unix.Mkdev(st.Dev_major, st.Dev_minor)
	found := storage.Token{Device: device, Inode: st.Ino}
	return slices.ContainsFunc(files, found.SameObject), nil
}
