package nodes

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
)

// A program that is killed closes its files as well: the kernel does it, and asks us to FLUSH them as if the program had
// called close(2). What tells the two apart is that a process that ends has no memory any more by then.
//
// Only files of /proc are read here that need no lock which execve(2) holds: it closes files too, and waits for our
// answer. /proc/PID/stat would need one, and so wait for us for ever; statm and status do not.

// closer is what is known of who closes a file.
type closer uint8

const (
	closes closer = iota // by itself, or at its end; also where nothing is known
	killed               // it was ended by a signal
)

// fatal are the signals that end a process at once and stay pending when they do: SIGHUP, SIGINT, SIGKILL, SIGUSR1,
// SIGUSR2, SIGPIPE, SIGALRM, SIGTERM. (Those that dump core are taken off first, and cannot be seen.)
const fatal = 1<<0 | 1<<(2-1) | sigKill | 1<<(10-1) | 1<<(12-1) | 1<<(13-1) | 1<<(14-1) | 1<<(15-1)

const sigKill = 1 << (9 - 1)

// whoCloses tells how the process goes on that makes a request.
func whoCloses(ctx context.Context) closer {
	thread := threadOf(ctx)
	if thread == 0 { // of another pid namespace
		return closes
	}
	dir := "/proc/" + strconv.FormatUint(uint64(thread), 10)
	if memory, err := os.ReadFile(dir + "/statm"); err == nil && hasNoMemory(string(memory)) {
		if status, err := os.ReadFile(dir + "/status"); err == nil && isKilled(status) {
			return killed
		}
	}
	if ctx.Err() != nil { // it has its answer, because it is killed, and nothing in /proc any more
		return killed
	}
	return closes
}

// hasNoMemory reports whether a statm (proc_pid_statm(5)) is that of a process that is ending.
func hasNoMemory(statm string) bool {
	fields := strings.Fields(statm)
	for _, f := range fields {
		if f != "0" {
			return false
		}
	}
	return len(fields) > 0
}

// isKilled reports whether a signal has ended the process, by its status (proc_pid_status(5)).
func isKilled(status []byte) bool {
	set := func(key string) uint64 {
		_, rest, _ := bytes.Cut(status, []byte("\n"+key+":\t"))
		text, _, _ := bytes.Cut(rest, []byte("\n"))
		signals, _ := strconv.ParseUint(string(text), 16, 64)
		return signals
	}
	pending := set("SigPnd") | set("ShdPnd")
	harmless := set("SigBlk") | set("SigIgn") | set("SigCgt")
	return pending&sigKill != 0 || pending&fatal&^harmless != 0
}
