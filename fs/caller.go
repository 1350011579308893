//go:build linux

package fs

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// caller is a thread that waits for the answer to a request.
type caller struct {
	thread uint32
	// changes says that the request may change something.
	changes bool
}

// ending are the signals after which a program no longer wants its answer, whether it is about to die or has a handler
// for them. A program that gets any other signal, such as SIGCHLD, SIGWINCH or the Go runtime's SIGURG, goes on
// waiting, as it would on a local file system: programs do not expect EINTR from a file.
const ending = 1<<(unix.SIGHUP-1) | 1<<(unix.SIGINT-1) | 1<<(unix.SIGQUIT-1) | 1<<(unix.SIGABRT-1) |
	1<<(unix.SIGALRM-1) | 1<<(unix.SIGTERM-1) | killed

// killed is pending for every thread of a process that a signal is about to end (complete_signal in the kernel).
const killed = 1 << (unix.SIGKILL - 1)

// gone reports whether nobody will miss the answer to the request. A change has its answer unless the caller dies, as
// it takes effect anyway.
func (c caller) gone() bool {
	pending, known := pendingSignals(c.thread)
	switch {
	case !known: // a thread in another pid namespace, or one that we may not see
		return !c.changes
	case c.changes:
		return pending&killed != 0
	}
	return pending&ending != 0
}

// pendingSignals returns the signals that were sent to a thread, or to its process, and that it does not block.
func pendingSignals(thread uint32) (signals uint64, known bool) {
	if thread == 0 {
		return 0, false
	}
	// The threads of a process have entries in /proc, though only the first one of each is listed.
	status, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(thread), 10) + "/status")
	if err != nil {
		return 0, false
	}
	mask := func(key string) (set uint64) {
		_, rest, found := bytes.Cut(status, []byte("\n"+key+":\t"))
		text, _, _ := bytes.Cut(rest, []byte("\n"))
		set, err := strconv.ParseUint(string(text), 16, 64)
		known = known && found && err == nil
		return set
	}
	known = true
	signals = (mask("SigPnd") | mask("ShdPnd")) &^ mask("SigBlk")
	return signals, known
}
