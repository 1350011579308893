package procfs

import (
	"errors"
	"time"

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

var (
	looks       = make(chan struct{}, maxLooks)
	errWithheld = errors.New("the kernel does not let us look at the process yet")
)

// Look returns what look returns, which reads what the kernel may withhold, with an error if it was not there in time, or if
// too many looks are under way. As look may go on then, it must not change anything.
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
	go storage.Guarded(func() {
		defer func() { <-looks }()
		found, err := look()
		done <- result{found, err}
	})()
	limit := time.NewTimer(lookLimit)
	defer limit.Stop()
	select {
	case r := <-done:
		return r.found, r.err
	case <-limit.C:
	}
	select { // both may have come while this process had no processor
	case r := <-done:
		return r.found, r.err
	default:
		return found, errWithheld
	}
}
