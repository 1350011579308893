package sessioncore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// WriterState says whether some process holds a file open for writing.
type WriterState uint8

// The answers. The zero value promises nothing.
const (
	WritersUnknown WriterState = iota // nobody lets us find out
	WritersNone
	WritersPresent
)

// String names the state for logs.
func (w WriterState) String() string {
	switch w {
	case WritersNone:
		return "none"
	case WritersPresent:
		return "present"
	}
	return "unknown"
}

// WriterFinder is a storage that can tell whether a live client holds a file (design.md section 4).
type WriterFinder interface {
	// Writers says whether a process holds the file open for writing at this moment. The caller holds
	// Lock(name), so that a writer that follows the lock is not met in the middle of its work.
	Writers(name string) (WriterState, error)
}

var _ WriterFinder = (*FileStorage)(nil)

// Writers implements WriterFinder by asking for a read lease, which the kernel refuses exactly when
// the file is open for writing anywhere on this machine (format.md); without leases, or without the
// right to one, by looking into /proc.
//
// The lease is given back at once. Who opens the file for writing within these microseconds is made
// to wait as long (with O_NONBLOCK: is told EAGAIN), and we are sent SIGIO, which the Go runtime
// ignores. This process keeps no session open for writing except within Append and Replace.
//
// The error is Open's, or ErrLocked where another program's lease forbids even reading.
func (s *FileStorage) Writers(name string) (WriterState, error) {
	p, err := s.place(name)
	if err != nil {
		return WritersUnknown, err
	}
	defer p.close()
	fd, st, err := p.open(unix.O_RDONLY)
	if err != nil {
		return WritersUnknown, err
	}
	defer unix.Close(fd)
	if state, _ := leaseState(fd); state != WritersUnknown { // what is not returned goes with the close
		return state, nil
	}
	return searchWriters("/proc", st), nil
}

// leaseState asks the kernel by a lease on a descriptor for reading. EACCES: not our file; EINVAL and
// others: no leases here. returned is false where the lease could not be given back: only closing the file
// does that then.
func leaseState(fd int) (state WriterState, returned bool) {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	switch err {
	case nil:
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return WritersNone, err == nil || err == unix.EAGAIN // EAGAIN: there is none any more
	case unix.EAGAIN:
		if isRemote(fd) {
			return WritersUnknown, true
		}
		return WritersPresent, true
	}
	return WritersUnknown, true
}

// remoteFileSystems have their leases from a server, or from nobody, and refuse them whoever has the file open
// (statfs(2)).
var remoteFileSystems = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CEPH_SUPER_MAGIC,
	unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
}

// isRemote reports whether a file lies where a refused lease says nothing of this machine's processes.
func isRemote(fd int) bool {
	var st unix.Statfs_t
	err := uninterrupted(func() error { return unix.Fstatfs(fd, &st) })
	return err == nil && slices.Contains(remoteFileSystems, uint32(st.Type))
}

// writers is Writers, as far as leases tell, for a file that is open for reading already.
func (o *fileObject) writers() (state WriterState, returned bool) { return leaseState(int(o.f.Fd())) }

// searchWriters looks through the descriptors of all processes for one that can write to the file.
//
// It cannot see into every process. That leaves doubt only where such a process could be a client of this
// file: its user owns the file, or the mode lets others write. Root's daemons, which are always there and
// always closed to us, could write to anything, and do not count against a user's own session. (One process of
// the user's that forbids being looked into, an ssh-agent say, is enough for doubt.)
func searchWriters(proc string, file Stat) WriterState {
	state, _ := findWriter(proc, file)
	return state
}

// findWriter is searchWriters, with the process that it found; 0 for none.
func findWriter(proc string, file Stat) (state WriterState, pid int) {
	processes, err := os.ReadDir(proc)
	if err != nil {
		return WritersUnknown, 0
	}
	shared := file.Mode&0o022 != 0
	uid := uint32(os.Geteuid())
	// Others' processes may not even be listed (hidepid).
	doubt := uid != 0 && (uid != file.UID || shared)
	seen := false
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, process.Name())
		found, err := processWrites(dir, file.Token)
		switch {
		case found:
			return WritersPresent, pid
		case errors.Is(err, fs.ErrPermission):
			doubt = doubt || shared || ownedBy(dir, file.UID)
		case err == nil:
			seen = true
		}
	}
	if doubt || !seen {
		return WritersUnknown, 0
	}
	return WritersNone, 0
}

// ownedBy reports whether a process is the user's; one that ended meanwhile is nobody's.
func ownedBy(dir string, uid uint32) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Uid == uid
}

// processWrites reports whether a process holds one of the files open for writing. The error is fs.ErrPermission
// where that cannot be seen; other errors mean that the process or the descriptor is gone.
func processWrites(dir string, files ...Token) (bool, error) {
	infos, err := os.ReadDir(filepath.Join(dir, "fdinfo"))
	if err != nil {
		return false, err
	}
	for _, info := range infos {
		link := filepath.Join(dir, "fd", info.Name())
		// Sockets, pipes and the like have targets that are no paths.
		target, err := os.Readlink(link)
		if errors.Is(err, fs.ErrPermission) {
			return false, err
		}
		if err != nil || !strings.HasPrefix(target, "/") || !isOneOf(link, files) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "fdinfo", info.Name()))
		if errors.Is(err, fs.ErrPermission) {
			return false, err
		}
		if err == nil && opensForWriting(string(text)) {
			return true, nil
		}
	}
	return false, nil
}

// isOneOf reports whether a link in /proc leads to one of the files. DONT_SYNC answers from what the kernel
// remembers: a descriptor on a network share that is away, or in our own mount, must not hold us up.
func isOneOf(link string, files []Token) bool {
	var st unix.Statx_t
	err := uninterrupted(func() error {
		return unix.Statx(unix.AT_FDCWD, link, unix.AT_STATX_DONT_SYNC, unix.STATX_INO, &st)
	})
	id := Token{Device: unix.Mkdev(st.Dev_major, st.Dev_minor), Inode: st.Ino}
	return err == nil && slices.ContainsFunc(files, id.SameObject)
}

// opensForWriting reads the flags line of a /proc/*/fdinfo file (proc_pid_fdinfo(5)): octal.
func opensForWriting(info string) bool {
	for line := range strings.Lines(info) {
		digits, ok := strings.CutPrefix(line, "flags:")
		if !ok {
			continue
		}
		flags, err := strconv.ParseUint(strings.TrimSpace(digits), 8, 64)
		return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
	}
	return false
}
