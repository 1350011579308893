package proc

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

// Of returns the process with an id.
func Of(pid int) Process {
	return Process{PID: pid, Dir: filepath.Join("/proc", strconv.Itoa(pid))}
}

// Processes returns all processes of the proc(5) mounted at proc, youngest first by id, as clients
// are younger than system processes.
func Processes(proc string) (all []Process) {
	names, _ := os.ReadDir(proc)
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err == nil {
			all = append(all, Process{PID: pid, Dir: filepath.Join(proc, name.Name())})
		}
	}
	slices.SortFunc(all, func(a, b Process) int {
		return b.PID - a.PID
	})
	return all
}

// Command returns the name of the process, "" if it is gone.
func (p Process) Command() string { return strings.TrimSuffix(p.Read("comm"), "\n") }

// Read returns the text of a file of the process, "" if it cannot be read.
func (p Process) Read(path ...string) string {
	text, _ := os.ReadFile(filepath.Join(p.Dir, filepath.Join(path...)))
	return string(text)
}

// Writes reports whether the process has one of the files or sockets open for writing. The error
// wraps fs.ErrPermission if we may not look. Any other error means that the process is gone. During
// execve it compares inode numbers only.
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
		// Linux before 5.14 has no such field: then any file may be this one.
		sameInode := func(f storage.Token) bool {
			return err != nil || f.Inode == inode
		}
		return opensForWriting(info) && slices.ContainsFunc(files, sameInode), nil
	})
}

// anyDescriptor reports whether match returns true for a descriptor of the process.
func (p Process) anyDescriptor(match func(fd string) (bool, error)) (bool, error) {
	fds, err := os.ReadDir(filepath.Join(p.Dir, "fdinfo"))
	for _, fd := range fds {
		found, err := match(fd.Name())
		if found || errors.Is(err, fs.ErrPermission) {
			return found, err
		}
	}
	return false, err
}

// opensForWriting parses the octal flags line of a /proc/*/fdinfo file (proc_pid_fdinfo(5)).
func opensForWriting(info string) bool {
	flags, err := strconv.ParseUint(Field(info, "flags"), 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// Field returns the trimmed value of a line "key:value" in the text of a file such as status or
// fdinfo, or "" if there is none.
func Field(text, key string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Writer returns the id of a process that has a file open for writing, 0 if none is seen. Processes
// that we may not inspect are passed over, and so is the one with the id except.
func Writer(file storage.Token, except int) (pid int) {
	for _, p := range Processes("/proc") {
		if p.PID == except {
			continue
		}
		found, _ := p.Writes(file)
		if found {
			return p.PID
		}
	}
	return 0
}
