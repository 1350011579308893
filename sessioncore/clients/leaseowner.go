package clients

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// socketOwner returns the PID of the process that has the Unix socket with this name, or 0 if it cannot be seen.
func socketOwner(proc, name string) int {
	table, err := os.ReadFile(filepath.Join(proc, "self", "net", "unix"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(table)) {
		// Num RefCount Protocol Flags Type St Inode Path
		if f := strings.Fields(line); len(f) == 8 && f[7] == name {
			return holderOf(proc, "socket:["+f[6]+"]")
		}
	}
	return 0
}

// holderOf returns the PID of a process with a descriptor whose link in /proc is link, or 0.
func holderOf(proc, link string) int {
	processes, err := os.ReadDir(proc)
	if err != nil {
		return 0
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(proc, process.Name(), "fd")
		fds, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if to, err := os.Readlink(filepath.Join(dir, fd.Name())); err == nil && to == link {
				return pid
			}
		}
	}
	return 0
}
