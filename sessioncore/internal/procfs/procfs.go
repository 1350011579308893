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

// Process is a process, with its directory in /proc.
type Process struct {
	PID int
	Dir string
}

// Of returns the process with a number.
func Of(pid int) Process { return Process{pid, filepath.Join("/proc", strconv.Itoa(pid))} }

// Processes returns all processes, where proc(5) is mounted at proc. The highest number comes first: a client is younger
// than what has run since the start.
func Processes(proc string) (all []Process) {
	names, _ := os.ReadDir(proc)
	for _, name := range names {
		if pid, err := strconv.Atoi(name.Name()); err == nil {
			all = append(all, Process{pid, filepath.Join(proc, name.Name())})
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return b.PID - a.PID })
	return all
}

// Command returns the name of the process, "" if it is gone.
func (p Process) Command() string { return strings.TrimSuffix(p.Read("comm"), "\n") }

// Read returns the text of a file of the process, "" if it cannot be read.
func (p Process) Read(path ...string) string {
	text, _ := os.ReadFile(filepath.Join(p.Dir, filepath.Join(path...)))
	return string(text)
}

// Writes reports whether the process has one of the files or sockets open for writing. The error wraps fs.ErrPermission if
// we may not look. Any other error means that the process is gone. Of a program in the middle of execve, it goes by the
// numbers of inodes alone.
func (p Process) Writes(files ...storage.Token) (bool, error) {
	writes, err := Look(func() (bool, error) {
		return p.anyDescriptor(func(fd string) (bool, error) {
			is, err := isOneOf(filepath.Join(p.Dir, "fd", fd), files)
			return is && opensForWriting(p.Read("fdinfo", fd)), err
		})
	})
	if !errors.Is(err, errWithheld) {
		return writes, err
	}
	return p.anyDescriptor(func(fd string) (bool, error) {
		info := p.Read("fdinfo", fd)
		inode, err := strconv.ParseUint(Field(info, "ino"), 10, 64)
		old := err != nil // Linux before 5.14 does not tell the inode
		return opensForWriting(info) && (old || slices.ContainsFunc(files, func(f storage.Token) bool { return f.Inode == inode })), nil
	})
}

// anyDescriptor reports whether is returns true for a descriptor of the process.
func (p Process) anyDescriptor(is func(fd string) (bool, error)) (bool, error) {
	fds, err := os.ReadDir(filepath.Join(p.Dir, "fdinfo"))
	for _, fd := range fds {
		found, err := is(fd.Name())
		if found || errors.Is(err, fs.ErrPermission) {
			return found, err
		}
	}
	return false, err
}

// ownedBy reports whether the process belongs to a user. It returns false if the process has ended.
func (p Process) ownedBy(uid uint32) bool {
	var st unix.Stat_t
	return unix.Lstat(p.Dir, &st) == nil && st.Uid == uid
}

// opensForWriting parses the flags line of a /proc/*/fdinfo file, which is octal (proc_pid_fdinfo(5)).
func opensForWriting(info string) bool {
	flags, err := strconv.ParseUint(Field(info, "flags"), 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// Field returns the value of a line "key:value" in the text of a file such as status or fdinfo, without white space
// around it, or "" if there is no such line.
func Field(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Find searches the descriptors of all processes but one for one that can write to the file. It returns whether there is
// one, and its process id or 0. proc is the directory where proc(5) is mounted.
//
// We may not look into every process. The state is unknown only if such a process could be a client of this file:
// its user owns the file, or the mode lets others write. Root's daemons, which always exist and never let us look,
// could write to anything; they do not count against a user's own session. (One process of the user that forbids
// inspection, such as an ssh-agent, is enough for an unknown state.)
func Find(proc string, file storage.Stat, except int) (state storage.WriterState, pid int) {
	shared := file.Mode&0o022 != 0
	uid := uint32(os.Geteuid())
	// Processes of other users may not even be listed (hidepid).
	doubt := uid != 0 && (uid != file.UID || shared)
	seen := false
	for _, p := range Processes(proc) {
		if p.PID == except {
			continue
		}
		found, err := p.Writes(file.Token)
		switch {
		case found:
			return storage.WritersPresent, p.PID
		case errors.Is(err, fs.ErrPermission):
			doubt = doubt || shared || p.ownedBy(file.UID)
		case err == nil:
			seen = true
		}
	}
	if doubt || !seen {
		return storage.WritersUnknown, 0
	}
	return storage.WritersNone, 0
}
