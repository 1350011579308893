package procfs

import (
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// While a program is in the middle of execve, the kernel lets nobody look at it through most of its files in /proc (all
// that may not be seen by whoever may not trace the new program: environ, maps and exe, on Linux 6.18 also stat, io, cwd,
// and the targets of fd/*), and whoever looks waits (exec_update_lock). That may take long: the program closes its
// descriptors meanwhile, and waits for the answers of their file systems, of which we may be one. Never withheld are
// status, comm, cmdline, cgroup, mountinfo, the names in fd/, and fdinfo/.

const (
	// lookLimit is how long a look may take that may be withheld: whoever waits for the lock of a session, which the one
	// who looks may hold, waits twice as long.
	lookLimit = storage.LockLimit / 2
	// maxLooks is how many looks may be under way: each that is withheld holds a thread.
	maxLooks = 64
)

var looks = make(chan struct{}, maxLooks)

// Look returns what look returns, which reads what the kernel may withhold. ok is false if it was not there in time, or if
// too many looks are under way. As look may go on then, it must not change anything.
func Look[T any](look func() T) (result T, ok bool) {
	select {
	case looks <- struct{}{}:
	default:
		return result, false
	}
	done := make(chan T, 1)
	go storage.Guarded(func() {
		defer func() { <-looks }()
		done <- look()
	})()
	limit := time.NewTimer(lookLimit)
	defer limit.Stop()
	select {
	case result = <-done:
		return result, true
	case <-limit.C:
	}
	select { // both may have come while this process had no processor
	case result = <-done:
		return result, true
	default:
		return result, false
	}
}

// ReadFile is os.ReadFile for what the kernel may withhold, with an error if it does.
func ReadFile(name string) ([]byte, error) { return lookAt(name, os.ReadFile) }

// Readlink is os.Readlink for what the kernel may withhold, with an error if it does.
func Readlink(name string) (string, error) { return lookAt(name, os.Readlink) }

// lookAt is Look for what can fail.
func lookAt[T any](name string, look func(name string) (T, error)) (T, error) {
	var found T
	read, ok := Look(func() func() (T, error) {
		found, err := look(name)
		return func() (T, error) { return found, err }
	})
	if !ok {
		return found, &os.PathError{Op: "look at", Path: name, Err: unix.EBUSY}
	}
	return read()
}

// FindInfo returns the descriptor of the process whose directory in /proc is dir for which is returns true, which is told
// the text in fdinfo/, or "" if there is none. Nothing of that is withheld.
func FindInfo(dir string, is func(info string) bool) (fd string, err error) {
	infos, err := os.ReadDir(filepath.Join(dir, "fdinfo"))
	if err != nil {
		return "", err
	}
	for _, info := range infos {
		if text, err := os.ReadFile(filepath.Join(dir, "fdinfo", info.Name())); err == nil && is(string(text)) {
			return info.Name(), nil
		}
	}
	return "", nil
}

// InfoInode returns the number of the inode in the text of a fdinfo file; ok is false before Linux 5.14, which does not
// tell it.
func InfoInode(info string) (inode uint64, ok bool) {
	inode, err := strconv.ParseUint(Field(info, "ino"), 10, 64)
	return inode, err == nil
}
