package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// ProcessHolds reports whether the process whose directory in /proc is dir has one of the files open for writing.
// The error wraps fs.ErrPermission if we may not look. Any other error means that the process or the descriptor is
// gone. Of a program in the middle of execve, it goes by the numbers of inodes alone.
func ProcessHolds(dir string, files ...storage.Token) (bool, error) {
	holds, err := lookAt(dir, func(string) (bool, error) { return processHolds(dir, files) })
	if !errors.Is(err, unix.EBUSY) {
		return holds, err
	}
	fd, err := FindInfo(dir, func(info string) bool {
		inode, known := InfoInode(info)
		return opensForWriting(info) && (!known || slices.ContainsFunc(files, func(f storage.Token) bool { return f.Inode == inode }))
	})
	return fd != "", err
}

func processHolds(dir string, files []storage.Token) (bool, error) {
	infos, err := os.ReadDir(filepath.Join(dir, "fdinfo"))
	if err != nil {
		return false, err
	}
	for _, info := range infos {
		link := filepath.Join(dir, "fd", info.Name())
		// The targets of sockets, pipes and the like are not paths.
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

// ownedBy reports whether a process belongs to a user. It returns false if the process has ended.
func ownedBy(dir string, uid uint32) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Uid == uid
}

// opensForWriting parses the flags line of a /proc/*/fdinfo file, which is octal (proc_pid_fdinfo(5)).
func opensForWriting(info string) bool {
	flags, err := strconv.ParseUint(Field(info, "flags"), 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// Find searches the descriptors of all processes for one that can write to the file. It returns whether there is
// one, and its process id or 0. proc is the directory where proc(5) is mounted.
//
// We may not look into every process. The state is unknown only if such a process could be a client of this file:
// its user owns the file, or the mode lets others write. Root's daemons, which always exist and never let us look,
// could write to anything; they do not count against a user's own session. (One process of the user that forbids
// inspection, such as an ssh-agent, is enough for an unknown state.)
func Find(proc string, file storage.Stat) (state storage.WriterState, pid int) {
	return find(proc, file, 0)
}

// FindOther is Find for the processes other than this one.
func FindOther(proc string, file storage.Stat) (state storage.WriterState, pid int) {
	return find(proc, file, os.Getpid())
}

// find is Find for the processes other than skip.
func find(proc string, file storage.Stat, skip int) (state storage.WriterState, pid int) {
	processes, err := os.ReadDir(proc)
	if err != nil {
		return storage.WritersUnknown, 0
	}
	shared := file.Mode&0o022 != 0
	uid := uint32(os.Geteuid())
	// Processes of other users may not even be listed (hidepid).
	doubt := uid != 0 && (uid != file.UID || shared)
	seen := false
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil || pid == skip {
			continue
		}
		dir := filepath.Join(proc, process.Name())
		found, err := ProcessHolds(dir, file.Token)
		switch {
		case found:
			return storage.WritersPresent, pid
		case errors.Is(err, fs.ErrPermission):
			doubt = doubt || shared || ownedBy(dir, file.UID)
		case err == nil:
			seen = true
		}
	}
	if doubt || !seen {
		return storage.WritersUnknown, 0
	}
	return storage.WritersNone, 0
}
