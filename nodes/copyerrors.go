package nodes

import (
	"fmt"
	"syscall"
)

// errNotForCopies means that no file of that name is copied in.
var errNotForCopies = fmt.Errorf("%w: only session files, NAME.jsonl, can be copied here, and what lies beside a session that was copied in", syscall.EPERM)

// errShownName means that what is copied comes from a mount.
var errShownName = fmt.Errorf("%w: that is a name that a mount shows of each session; copy the agent's own directory, or NAME.jsonl and artifacts/", syscall.EPERM)

// errNoArtifacts means that SOURCE is a database.
var errNoArtifacts = fmt.Errorf("%w: a database has no place for it; artifacts stay on the disk of who made them, and only sessions, NAME.jsonl, are copied here", syscall.EPERM)

// errNotEmptied means that a program writes into the middle of a file.
var errNotEmptied = fmt.Errorf("%w: a file can only be copied anew, from its beginning; what is added goes through append", syscall.EPERM)
