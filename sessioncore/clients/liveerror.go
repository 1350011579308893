package clients

import (
	"fmt"
	"os"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/procfs"
	"sessionfs/sessioncore/storage"
)

// Sign says how a live client was detected (docs/design.md section 4).
type Sign uint8

const (
	// SignDescriptor: a process has the session file open for writing.
	SignDescriptor Sign = iota + 1
	// SignTerminal: the breadcrumb of a client's terminal names the session.
	SignTerminal
	// SignLease: a client holds the session's lease.
	SignLease
)

// String returns the sign's name in the file owner.
func (s Sign) String() string {
	switch s {
	case SignDescriptor:
		return "descriptor"
	case SignTerminal:
		return "breadcrumb"
	case SignLease:
		return "lease"
	}
	return "none"
}

// LiveError reports that a live client has a session open, and what is known of the client. It wraps ErrBusy.
type LiveError struct {
	Session  string // file name of the session
	Sign     Sign
	Terminal string // file name of the breadcrumb; only with SignTerminal

	find func() (pid int) // finds the process; nil if it is unknown
}

// Writing is the error for a process other than this one that has a session file open for writing.
func Writing(files storage.Files, name string) *LiveError {
	return &LiveError{Session: name, Sign: SignDescriptor, find: sync.OnceValue(func() int {
		st, err := files.Stat(name)
		if err != nil {
			return 0
		}
		_, pid := procfs.Find("/proc", st, os.Getpid())
		return pid
	})}
}

// Process returns the client's process and its name, 0 and "" if unknown. The first call may take milliseconds.
func (e *LiveError) Process() (pid int, command string) {
	if e.find != nil {
		pid = e.find()
	}
	if pid != 0 {
		command = procfs.Of(pid).Command()
	}
	return pid, command
}

// Error names the client and says what the user can do. The first call may take as long as Process.
func (e *LiveError) Error() string {
	const waysOut = "end it there first, or write to a fork (-o live=allow turns this check off)"
	return fmt.Sprintf("%v %s: %s %s: %s", sessioncore.ErrBusy, e.Session, e.who(), e.does(), waysOut)
}

func (e *LiveError) who() string {
	switch pid, command := e.Process(); {
	case pid == 0:
		return "a process that cannot be seen from here"
	case command == "":
		return fmt.Sprintf("process %d", pid)
	default:
		return fmt.Sprintf("process %d (%q)", pid, command)
	}
}

func (e *LiveError) does() string {
	switch e.Sign {
	case SignTerminal:
		return fmt.Sprintf("has it open in the terminal %q", e.Terminal)
	case SignLease:
		return "holds its lease"
	}
	return "has its file open for writing"
}

// Unwrap returns ErrBusy.
func (e *LiveError) Unwrap() error { return sessioncore.ErrBusy }
