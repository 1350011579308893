package nodes

import (
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// mkdirCalls are the numbers of the system calls that make directories, as in /proc/PID/syscall.
var mkdirCalls = func() []string {
	calls := []string{strconv.Itoa(unix.SYS_MKDIRAT)}
	if runtime.GOARCH == "amd64" {
		calls = append(calls, "83") // mkdir(2), which newer architectures do not have
	}
	return calls
}()
