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
		if err == nil { // others are not of processes
			dir := filepath.Join(proc, name.Name())
			all = append(all, Process{PID: pid, Dir: dir})
		}
	}
	slices.SortFunc(all, func(left, right Process) int {
		return right.PID - left.PID
	})
	return all
}

// Command returns the name of the process, "" if it is gone.
func (p Process) Command() string { return strings.TrimSuffix(p.Read("comm"), "\n") }

// Read returns the text of a file of the process, "" if it cannot be read. path has the elements of its path below Dir.
func (p Process) Read(path ...string) string {
	file := filepath.Join(p.Dir, filepath.Join(path...))
	text, _ := os.ReadFile(file)
	return string(text)
}

// Writes reports whether the process has one of the files or sockets open for writing. The error
// wraps fs.ErrPermission if we may not look. Any other error means that the process is gone. During
// execve it compares inode numbers only.
func (p Process) Writes(files ...storage.Token) (bool, error) {
	isFile := func(fd string) (bool, error) {
		link := filepath.Join(p.Dir, "fd", fd)
		is, err := isOneOf(link, files)
		if err != nil || !is {
			return false, err
		}
		return opensForWriting(p.Read("fdinfo", fd)), nil
	}
	writes, err := Look(func() (bool, error) {
		return p.anyDescriptor(isFile)
	})
	if !errors.Is(err, errWithheld) {
		return writes, err
	}
	mayBeFile := func(fd string) (bool, error) { // in its fdinfo alone, which is never withheld
		info := p.Read("fdinfo", fd)
		return opensForWriting(info) && hasInode(info, files), nil
	}
	return p.anyDescriptor(mayBeFile)
}

// hasInode reports whether the inode number in the text of a /proc/*/fdinfo file is that of one of the files. Linux before
// 5.14 writes no number: then any file may be this one.
func hasInode(info string, files []storage.Token) bool {
	inode, err := strconv.ParseUint(Field(info, "ino"), 10, 64)
	if err != nil {
		return len(files) > 0
	}
	return slices.ContainsFunc(files, func(file storage.Token) bool {
		return file.Inode == inode
	})
}

// anyDescriptor reports whether match returns true for a descriptor of the process. It ends early if we may not look;
// other errors are of descriptors that are closed meanwhile. The error is of the list of descriptors, if match
// returns true for none.
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

// opensForWriting reports whether the octal flags line of a /proc/*/fdinfo file (proc_pid_fdinfo(5)) allows to write.
func opensForWriting(info string) bool {
	flags, err := strconv.ParseUint(Field(info, "flags"), 8, 64)
	return err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
}

// Field returns the trimmed value of a line "key:value" in the text of a file such as status or
// fdinfo, or "" if there is none.
func Field(text, key string) string {
	for line := range strings.Lines(text) {
		value, hasKey := strings.CutPrefix(line, key+":")
		if hasKey {
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
