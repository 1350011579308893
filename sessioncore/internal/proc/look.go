package proc

import (
	"errors"
	"time"

	"sessionfs/sessioncore/storage"
)

// During execve the kernel blocks readers of most files in a program's /proc directory
// (exec_update_lock): all those that need permission to trace it, such as environ, maps, exe and
// the targets of fd/*; on Linux 6.18 also stat, io and cwd. That may take long, as the program
// closes its descriptors meanwhile and waits for their file systems, perhaps ours. Never blocked
// are status, comm, cmdline, cgroup, mountinfo, the names in fd/, and fdinfo/.

const (
	// lookLimit bounds a read in /proc that may block: half the time for which others wait for a
	// session's lock, which the caller may hold.
	lookLimit = storage.LockLimit / 2
	// maxLooks bounds the reads under way, as each blocked one holds a thread.
	maxLooks = 64
)

var (
	looks       = make(chan struct{}, maxLooks)
	errWithheld = errors.New("the kernel does not let us look at the process yet")
)

// Look returns the result of look, which reads from /proc. It returns errWithheld if look blocks
// for too long, or too many reads are under way. A late look goes on: it must change nothing.
func Look[T any](look func() (T, error)) (found T, err error) {
	select {
	case looks <- struct{}{}:
	default:
		return found, errWithheld
	}
	type result struct {
		found T
		err   error
	}
	done := make(chan result, 1)
	guarded := storage.Guarded(func() {
		defer func() { <-looks }()
		found, err := look()
		done <- result{found: found, err: err}
	})
	go guarded()
	limit := time.NewTimer(lookLimit)
	defer limit.Stop()
	select {
	case r := <-done:
		return r.found, r.err
	case <-limit.C:
	}
	select { // the timer may have fired with the result ready
	case r := <-done:
		return r.found, r.err
	default:
		return found, errWithheld
	}
}
