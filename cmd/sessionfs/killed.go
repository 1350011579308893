//go:build linux

package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
)

// A server that is killed while one of its threads waits for its own mount cannot end: the kernel waits for an answer
// that nobody can give, and as long as the thread is there the connection is open, so that all who look at the mount
// wait too. This program's server opens nothing in its mount, but the kernel may take locks for it that others hold.
// What frees all of them is to abort the connection.

// connections is where fusectl shows the connections of FUSE mounts, each as a directory with a file "abort", which
// belongs to the user who mounted.
const connections = "/sys/fs/fuse/connections"

// abortFile is the path of that file.
func (e mountEntry) abortFile() string {
	return filepath.Join(connections, strconv.FormatUint(uint64(e.minor), 10), "abort")
}

// abort detaches a mount and ends its connection: whoever waits for it gets an error.
func abort(e mountEntry) error {
	err := writeAbort(e)
	if err == nil {
		return unmount(e.mountpoint, true)
	}
	if mayMount() { // fusectl may not be mounted; forced, umount2(2) aborts as well
		return unix.Unmount(e.mountpoint, unix.MNT_FORCE|unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return err
}

func writeAbort(e mountEntry) error {
	f, err := os.OpenFile(e.abortFile(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("1")
	return err
}

// removeKilled aborts a mount whose server was killed and cannot end.
func removeKilled(e mountEntry, code int) error {
	if err := abort(e); err != nil {
		return refuse(code, "the server of the mount at %s was killed but cannot end, and all who look at the mount wait; "+
			"to free them, its connection must be aborted: %s\nRoot can do that: sudo sessionfs -u %s", e.mountpoint, err, e.mountpoint)
	}
	return nil
}

// serverKilled reports whether the server of a FUSE mount was killed and cannot end: a thread that SIGKILL waits for has
// the connection open. Before Linux 6.16 the descriptor does not tell which connection it is; then guess says whether a
// thread of this program will do.
func serverKilled(e mountEntry, guess bool) bool {
	tasks, _ := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	for _, task := range tasks {
		if isDying(task) && hasConnection(task, e, guess) {
			return true
		}
	}
	return false
}

// isDying reports whether SIGKILL waits for a thread.
func isDying(task string) bool {
	const key, bit = "SigPnd:", 1 << (unix.SIGKILL - 1)
	value, ok := procValue(filepath.Join(task, "status"), key)
	pending, err := strconv.ParseUint(value, 16, 64)
	return ok && err == nil && pending&bit != 0
}

// hasConnection reports whether a thread has the connection of a mount open.
func hasConnection(task string, e mountEntry, guess bool) bool {
	guess = guess && isProgram(task)
	infos, _ := filepath.Glob(filepath.Join(task, "fdinfo", "*"))
	for _, info := range infos {
		number, ok := procValue(info, "fuse_connection:")
		if ok && number == fmt.Sprint(e.minor) || !ok && guess && isFuse(filepath.Join(task, "fd", filepath.Base(info))) {
			return true
		}
	}
	return false
}

// isProgram reports whether a thread is one of this program. Links of a thread, exe too, are not for everybody to look at:
// one that was killed in the middle of execve keeps all waiting who do (sessioncore/internal/procfs).
func isProgram(task string) bool {
	name, err := os.ReadFile(filepath.Join(task, "comm"))
	return err == nil && strings.Contains(string(name), mountopts.Subtype)
}

// isFuse reports whether a link in /proc is that of a descriptor of /dev/fuse.
func isFuse(link string) bool {
	target, err := os.Readlink(link)
	return err == nil && filepath.Base(target) == filepath.Base(fuseDevice)
}

// procValue returns what follows key in a file of /proc, without white space around it.
func procValue(file, key string) (value string, ok bool) {
	f, err := os.Open(file)
	if err != nil {
		return "", false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), key); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
