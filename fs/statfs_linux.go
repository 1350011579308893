package fs

import (
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage/dir"
)

// statfsOf returns a function that answers statfs with the numbers of the file system of SOURCE, as df shows them
// (docs/design.md section 6).
func statfsOf(source *dir.Storage) func(*fuse.StatfsOut) error {
	return func(out *fuse.StatfsOut) error {
		var st unix.Statfs_t
		if err := source.Statfs(&st); err != nil {
			return err
		}
		*out = fuse.StatfsOut{
			Blocks: st.Blocks, Bfree: st.Bfree, Bavail: st.Bavail, Files: st.Files, Ffree: st.Ffree,
			Bsize: uint32(st.Bsize), NameLen: syscall.NAME_MAX, Frsize: uint32(st.Frsize),
		}
		return nil
	}
}
