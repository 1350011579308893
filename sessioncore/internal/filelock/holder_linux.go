package filelock

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore/internal/procfs"
)

// The kernel does not tell who holds a lock: the credentials of a peer are known only of connected sockets. /proc has
// the number of the socket with a name, and which descriptors stand for it.

// holder is a process that holds a lock.
type holder struct {
	path   string // of the lock
	socket string // what the descriptor's link in /proc says
	link   string // the path of that link
	pid    int
}

// is reports whether the process still has the socket open. Numbers of sockets are not given out twice, and a socket
// keeps its name as long as it is open.
func (h holder) is(path string) bool {
	if h.path != path || h.pid == 0 {
		return false
	}
	socket, err := procfs.Readlink(h.link)
	return err == nil && socket == h.socket
}

// PID returns the process that holds the lock at path, 0 if it cannot be seen. It searches /proc, which may take
// milliseconds, unless the answer is that of the last time.
func (p *Probe) PID(path string) int {
	p.search.Lock()
	defer p.search.Unlock()
	if !p.last.is(path) {
		p.last = findHolder("/proc", path)
	}
	return p.last.pid
}

func findHolder(proc, path string) holder {
	table, err := os.ReadFile(filepath.Join(proc, "self", "net", "unix"))
	if err != nil {
		return holder{}
	}
	name := Socket(path)
	for line := range strings.Lines(string(table)) {
		// Num RefCount Protocol Flags Type St Inode Path
		if f := strings.Fields(line); len(f) == 8 && f[7] == name {
			h := holder{path: path, socket: socketLink(f[6])}
			h.find(proc)
			return h
		}
	}
	return holder{}
}

// find searches the descriptors of all processes for the socket, the youngest process first: a client is younger than
// what has run since the start.
func (h *holder) find(proc string) {
	var pids []int
	for _, name := range names(proc) {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	for _, pid := range slices.Backward(pids) {
		if h.findIn(proc, pid) {
			return
		}
	}
}

// findIn searches the descriptors of a process; of a program in the middle of execve, by the numbers of inodes alone.
func (h *holder) findIn(proc string, pid int) bool {
	dir := filepath.Join(proc, strconv.Itoa(pid))
	fd, ok := procfs.Look(func() string { return descriptorOf(dir, h.socket) })
	if !ok {
		fd, _ = procfs.FindInfo(dir, func(info string) bool {
			inode, _ := procfs.InfoInode(info)
			return h.socket == socketLink(strconv.FormatUint(inode, 10))
		})
	}
	if fd == "" {
		return false
	}
	h.link, h.pid = filepath.Join(dir, "fd", fd), pid
	return true
}

// descriptorOf returns the descriptor of a process whose link is to a socket, or "".
func descriptorOf(dir, socket string) string {
	for _, fd := range names(filepath.Join(dir, "fd")) {
		if target, err := os.Readlink(filepath.Join(dir, "fd", fd)); err == nil && target == socket {
			return fd
		}
	}
	return ""
}

// socketLink is the link of a descriptor to the socket with a number.
func socketLink(inode string) string { return "socket:[" + inode + "]" }

// names returns the names in a directory, as far as they can be read.
func names(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close()
	list, _ := d.Readdirnames(-1)
	return list
}
