package dir

import (
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/writers"
	"sessionfs/sessioncore/storage"
)

// Writers implements Storage by asking for a read lease, which the kernel refuses exactly when
// the file is open for writing anywhere on this machine (docs/format.md, What a running client has open); without
// leases, or without the right to one, by looking into /proc.
//
// The lease is given back at once. Who opens the file for writing within these microseconds is made
// to wait as long (with O_NONBLOCK: is told EAGAIN), and we are sent SIGIO, which the Go runtime
// ignores. This process keeps no session open for writing except within Append and Replace.
//
// The error is Open's, or ErrLocked where another program's lease forbids even reading.
func (s *Storage) Writers(name string) (storage.WriterState, error) {
	p, err := s.place(name)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer p.close()
	fd, st, err := p.open(unix.O_RDONLY)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer unix.Close(fd)
	if state, _ := lease(fd); state != storage.WritersUnknown { // what is not returned goes with the close
		return state, nil
	}
	state, _ := writers.Find("/proc", st)
	return state, nil
}

// Writers implements Object: what a lease on the open file tells.
func (o *file) Writers() (storage.WriterState, error) {
	state, returned := lease(int(o.f.Fd()))
	if !returned {
		return state, storage.ErrLeaseKept
	}
	return state, nil
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
