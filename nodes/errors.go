package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// The errors of this package contain hints. The exported ones are reasons for View.Frozen.
var (
	ErrArchived = fmt.Errorf("%w: the session is archived", sessioncore.ErrReadOnly)
	ErrForeign  = fmt.Errorf("%w: sessions of this agent are written by it alone", sessioncore.ErrReadOnly)
	errDenied   = errors.New("this is generated or belongs to the client: it cannot be changed through the mount")
)

// errReplaced means that the node's name is now that of another node: the door repeats the lookup.
var errReplaced = fmt.Errorf("%w: it was replaced", storage.ErrStale)

// noHint is for errors whose texts contain a hint.
const noHint = ""

// kindOfError is a kind of domain error with its errno, 0 for the system call's, and a hint.
type kindOfError struct {
	err   error
	errno syscall.Errno
	hint  string
}

// kindsOfError are the kinds in order of precedence: an error that wraps several is of the first.
var kindsOfError = []kindOfError{
	{ErrArchived, syscall.EROFS, noHint},
	{ErrForeign, syscall.EROFS, "sessionfs import makes an omp session of it"},
	{errDenied, syscall.EPERM, noHint},
	{storage.ErrStale, syscall.ESTALE, "look again what is there, and then try again"},
	{storage.ErrLocked, syscall.EBUSY, "try again when the other writer is done"},
	{sessioncore.ErrBusy, syscall.EBUSY, noHint},
	{writer.ErrNotOwn, syscall.EPERM, noHint},
	{sessioncore.ErrInvalid, syscall.EINVAL, noHint},
	{history.ErrQuery, syscall.EINVAL, `put the words that are to be found as they are into double quotes`},
	{search.ErrQuery, syscall.EINVAL, noHint},
	{sessioncore.ErrExists, syscall.EEXIST, "leave id out, and a new one is made"},
	{fs.ErrExist, syscall.EEXIST, "what has that name is kept: see in SOURCE what it is"},
	{sessioncore.ErrTooBig, syscall.EFBIG, "put the text into a file, and its path into the line"},
	{history.ErrTooBig, syscall.EFBIG, "ask the database in SOURCE with sqlite3"},
	{budget.ErrNoMemory, syscall.ENOMEM, noHint},
	{storage.ErrUnsupported, syscall.EOPNOTSUPP, "it can be done where SOURCE is"},
	{sessioncore.ErrReadOnly, syscall.EROFS, "mount without -o ro to write"},
	{writer.ErrNoDirectory, syscall.ENOENT, "make it first"},
	{sessioncore.ErrNotFound, syscall.ENOENT, "entries/ has the ids that are there"},
	{sessioncore.ErrNotSession, syscall.ENOENT, "see problems.jsonl, or the first line of the file"},
	{storage.ErrNotRegular, syscall.ENOENT, "only files are shown; see what it is in SOURCE"},
	{storage.ErrBadName, syscall.ENOENT, "choose a shorter name without control characters"},
	{fs.ErrNotExist, syscall.ENOENT, "look in SOURCE whether it was moved"},
	{context.Canceled, syscall.EINTR, noHint},
	{context.DeadlineExceeded, syscall.EINTR, noHint},
	{syscall.ENOSPC, 0, "make room where SOURCE is"},
	{syscall.EDQUOT, 0, "make room where SOURCE is, or have the quota raised"},
	{syscall.EFBIG, 0, "the file may not grow: see the limits of the process that serves the mount (ulimit -f)"},
	{syscall.ENAMETOOLONG, 0, "choose a shorter one"},
	{syscall.ENOTDIR, 0, "name a directory"},
	{syscall.EXDEV, 0, "with the agent itself it can be done"},
	{syscall.EOPNOTSUPP, 0, "with the agent itself it can be done"},
	{syscall.EROFS, 0, "the file system of SOURCE is mounted read-only"},
	{fs.ErrPermission, 0, "see the modes in SOURCE, and which user serves the mount"},
}

// unknownHint is for other errors of the storage, and for defects of ours.
const unknownHint = "; the log of the mount has all such errors"

// Errno is the only function that turns domain errors into errnos (docs/design.md section 7).
func Errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	errno := syscall.EIO
	if k := kindOf(err); k.errno != 0 {
		return k.errno
	} else if k.err == fs.ErrPermission {
		errno = syscall.EACCES
	}
	_ = errors.As(err, &errno)
	return errno
}

// kindOf returns the kind of an error; its err is nil for an unknown error.
func kindOf(err error) kindOfError {
	for _, k := range kindsOfError {
		if errors.Is(err, k.err) {
			return k
		}
	}
	return kindOfError{hint: unknownHint}
}

// hintFor returns the hint for an error about a session, or outside, as an addition to its text.
func hintFor(session string, err error) string {
	k := kindOf(err)
	switch {
	case session == outside && (k.err == sessioncore.ErrNotFound || k.err == fs.ErrNotExist):
		return "; ls shows what is there"
	case session == outside && k.err == writer.ErrNoDirectory:
		return `; make it first, or write {"cwd": …, "create": true}`
	case k.err == nil || k.hint == noHint:
		return k.hint
	}
	return "; " + k.hint
}

// staleIfGone converts an error that means that the backing file of an existing node is gone to
// ESTALE, so that a door looks up the path once more.
func staleIfGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sessioncore.ErrNotFound) ||
		errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) {
		return fmt.Errorf("%w: %w", storage.ErrStale, err)
	}
	return err
}

// Stale returns the errno of a failed operation: ESTALE if the file behind the node is gone.
func Stale(n Node, name, op string, err error) syscall.Errno {
	return Fail(n, name, op, staleIfGone(err))
}

// Fail returns the errno of a failed operation on a node, and logs the error unless the errno says
// it all. name is the name of a file or a link in its directory.
func Fail(n Node, name, op string, err error) syscall.Errno {
	if err == nil {
		return 0
	}
	return n.Base().view.fail(op, pathOf(n, name), err)
}

func (v *View) fail(op, path string, err error) syscall.Errno {
	errno := Errno(err)
	switch {
	case errno == 0, errno == syscall.ENOENT, errno == syscall.EINTR, errors.Is(err, errReplaced):
	case errno == syscall.EIO:
		v.Log.Error("backing I/O failed", "op", op, "path", path, "err", err)
	default:
		v.Log.Warn("refused", "op", op, "path", path, "errno", errno, "err", err)
	}
	if errors.Is(err, budget.ErrNoMemory) {
		of := path
		if v.Memory.Full() != "" {
			of = memoryFull
		}
		v.noteRefusal(outside, of, path, errno, err, func() {})()
	}
	return errno
}
