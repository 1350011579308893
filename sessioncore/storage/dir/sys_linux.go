package dir

import (
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// What only Linux has; sys_other.go has what stands for it elsewhere.

const (
	oPath           = unix.O_PATH
	renameExchange  = unix.RENAME_EXCHANGE
	renameNoReplace = unix.RENAME_NOREPLACE
	errNoAttribute  = unix.ENODATA
	resolveNoLinks  = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
)

// renameat2 is renameat2(2).
func renameat2(fromDir int, from string, toDir int, to string, flags uint) error {
	return unix.Renameat2(fromDir, from, toDir, to, flags)
}

// openBeneath opens a name below a directory, following no link.
func openBeneath(dir int, name string, flags int) (int, error) {
	return unix.Openat2(dir, name, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_BENEATH | resolveNoLinks})
}

// openNoLinks opens an absolute path, following no link.
func openNoLinks(path string, flags int) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: uint64(flags), Resolve: resolveNoLinks})
}

// lease asks the kernel by a lease on a descriptor for reading. EACCES: not our file; EINVAL and
// others: no leases here. returned is false where the lease could not be given back: only closing the file
// does that then.
func lease(fd int) (state storage.WriterState, returned bool) {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	switch err {
	case nil:
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return storage.WritersNone, err == nil || err == unix.EAGAIN // EAGAIN: there is none any more
	case unix.EAGAIN:
		if isRemote(fd) {
			return storage.WritersUnknown, true
		}
		return storage.WritersPresent, true
	}
	return storage.WritersUnknown, true
}

// isRemote reports whether a file lies where a refused lease says nothing of this machine's processes.
func isRemote(fd int) bool {
	var st unix.Statfs_t
	err := retry(func() error { return unix.Fstatfs(fd, &st) })
	return err == nil && slices.Contains(remoteFileSystems, uint32(st.Type))
}

// remoteFileSystems have their leases from a server, or from nobody, and refuse them whoever has the file open
// (statfs(2)).
var remoteFileSystems = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC,
	unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
}
