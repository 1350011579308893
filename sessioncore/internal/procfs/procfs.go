package procfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// ProcessHolds reports whether a process holds one of the files open for writing. The error is fs.ErrPermission
// where that cannot be seen; other errors mean that the process or the descriptor is gone.
func ProcessHolds(dir string, files ...storage.Token) (bool, error) {
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

// ownedBy reports whether a process is the user's; one that ended meanwhile is nobody's.
func ownedBy(dir string, uid uint32) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Uid == uid
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

// Find looks through the descriptors of all processes for one that can write to the file, and returns which it is, 0
// for none; proc is where proc(5) is mounted.
//
// It cannot see into every process. That leaves doubt only where such a process could be a client of this
// file: its user owns the file, or the mode lets others write. Root's daemons, which are always there and
// always closed to us, could write to anything, and do not count against a user's own session. (One process of
// the user's that forbids being looked into, an ssh-agent say, is enough for doubt.)
func Find(proc string, file storage.Stat) (state storage.WriterState, pid int) {
	processes, err := os.ReadDir(proc)
	if err != nil {
		return storage.WritersUnknown, 0
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
