package search

import "golang.org/x/sys/unix"

// canLowerPriority: in Linux each thread has its own priority.
const canLowerPriority = true

const (
	lowestPriority = 19
	// Of ioprio_set(2), which the package unix has not.
	ioprioWhoProcess = 1
	ioprioIdle       = 3 << 13
)

// lowerPriority makes the kernel prefer everything else to the calling thread. Without success it is merely as urgent.
func lowerPriority() {
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), lowestPriority)
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, ioprioWhoProcess, 0, ioprioIdle)
}

func isMainThread() bool { return unix.Gettid() == unix.Getpid() }
