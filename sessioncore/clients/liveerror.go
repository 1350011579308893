package clients

import (
	"fmt"

	"sessionfs/sessioncore"
)

// Sign is how a live client was recognised (docs/design.md section 4).
type Sign uint8

// The signs.
const (
	// SignDescriptor: a process has the session file open for writing.
	SignDescriptor Sign = iota + 1
	// SignTerminal: the breadcrumb of a client's terminal names the session.
	SignTerminal
	// SignLease: a client holds the session's lease.
	SignLease
)

// String names the sign for logs.
func (s Sign) String() string {
	switch s {
	case SignDescriptor:
		return "descriptor"
	case SignTerminal:
		return "terminal"
	case SignLease:
		return "lease"
	}
	return "none"
}

// LiveError says that a live client is on a session, and what is known of it. It wraps ErrBusy.
type LiveError struct {
	Session  string // the file's name
	Sign     Sign
	PID      int    // 0: not known
	Command  string // the process's name; "" where the PID is not known
	Terminal string // the breadcrumb's name, with SignTerminal
}

// Error says who is in the way, and the ways out.
func (e *LiveError) Error() string {
	const waysOut = "end it there first, or write to a fork (-o live=allow turns this check off)"
	return fmt.Sprintf("%v %s: %s %s: %s", sessioncore.ErrBusy, e.Session, e.who(), e.does(), waysOut)
}

func (e *LiveError) who() string {
	switch {
	case e.PID == 0:
		return "a process that cannot be seen from here"
	case e.Command == "":
		return fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("process %d (%q)", e.PID, e.Command)
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

// Unwrap makes it an ErrBusy.
func (e *LiveError) Unwrap() error { return sessioncore.ErrBusy }
