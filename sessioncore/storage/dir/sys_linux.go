package dir

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
)

// This file has Linux's calls; sys_other.go has the substitutes.

const (
	oPath           = unix.O_PATH
	renameExchange  = unix.RENAME_EXCHANGE
	renameNoReplace = unix.RENAME_NOREPLACE
	errNoAttribute  = unix.ENODATA
)

var renameat2 = unix.Renameat2

// openNoLinks opens a name below a directory, or an absolute path, without following links.
func openNoLinks(from int, path string, flags int) (int, error) {
	const resolve = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	return unix.Openat2(from, path, &unix.OpenHow{Flags: uint64(flags), Resolve: resolve})
}

// lease reports whether fd, open for reading, is open for writing elsewhere, by taking a read
// lease. EACCES means that it is not our file, EINVAL and others that there are no leases. Callers
// close fd at once, which also ends a lease that could not be returned. The refusal of a remote
// file system says nothing about the processes of this machine.
func lease(fd int, remote bool) storage.WriterState {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	switch {
	case err == nil:
		_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_UNLCK)
		return storage.WritersNone
	case err == unix.EAGAIN && !remote:
		return storage.WritersPresent
	}
	return storage.WritersUnknown
}

// sharedFileSystems are the types (statfs(2)) that several machines may use at a time. FUSE counts
// as one, as the kernel does not tell its backing.
var sharedFileSystems = []uint32{
	unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
	unix.CEPH_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.V9FS_MAGIC, unix.FUSE_SUPER_MAGIC,
	unix.AFS_FS_MAGIC, unix.OCFS2_SUPER_MAGIC,
	0x01161970, // GFS2
	0x0bd00bd0, // Lustre
	0x47504653, // GPFS
	0x19830326, // BeeGFS
	0x20030528, // OrangeFS
	0xaad7aaea, // PanFS
	0x786f4256, // VirtualBox's shared folders
}

// isShared reports whether a file or directory is on one of sharedFileSystems.
func isShared(fd int) bool {
	var st unix.Statfs_t
	err := retry(func() error {
		return unix.Fstatfs(fd, &st)
	})
	return err == nil && slices.Contains(sharedFileSystems, uint32(st.Type))
}

// statNow is fstatat(2) from the server and not from the kernel's cache, without following a link.
// An empty base means the descriptor itself. The error is ENOSYS if the system cannot do that.
func statNow(fd int, base string) (storage.Stat, error) {
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_STATX_FORCE_SYNC
	if base == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	var st unix.Statx_t
	err := retry(func() error {
		return unix.Statx(fd, base, flags, unix.STATX_BASIC_STATS, &st)
	})
	if err == unix.EPERM { // a sandbox
		err = unix.ENOSYS
	}
	if err != nil {
		return storage.Stat{}, err
	}
	nanos := func(t unix.StatxTimestamp) unix.Timespec {
		return unix.NsecToTimespec(t.Sec*1e9 + int64(t.Nsec))
	}
	return statOf(&unix.Stat_t{
		Dev:  unix.Mkdev(st.Dev_major, st.Dev_minor),
		Ino:  st.Ino,
		Mode: uint32(st.Mode),
		Size: int64(st.Size),
		Uid:  st.Uid,
		Gid:  st.Gid,
		Mtim: nanos(st.Mtime),
		Ctim: nanos(st.Ctime),
	}), nil
}

// dropCache drops the kernel's cached content of a file.
func dropCache(fd int) { _ = unix.Fadvise(fd, 0, 0, unix.FADV_DONTNEED) }

// startOf returns the start time of a process.
func startOf(pid int) (time.Time, bool) {
	stat, err := proc.Look(func() (string, error) {
		return proc.Of(pid).Read("stat"), nil
	})
	if err != nil {
		return time.Time{}, false
	}
	// The fields after the name, which is in parentheses and arbitrary (proc_pid_stat(5)).
	nameEnd := strings.LastIndexByte(stat, ')') + 1
	fields := strings.Fields(stat[nameEnd:])
	const start = 19 // in hundredths of a second since the boot
	if len(fields) <= start {
		return time.Time{}, false
	}
	ticks, err := strconv.ParseInt(fields[start], 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	var sinceBoot unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_BOOTTIME, &sinceBoot)
	if err != nil {
		return time.Time{}, false
	}
	const tick = time.Second / 100
	age := time.Duration(sinceBoot.Nano()) - time.Duration(ticks)*tick
	return time.Now().Add(-age), true
}
