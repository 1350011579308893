package nodes

import (
	"errors"
	"io/fs"
	"slices"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/sent"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// The reasons that this package gives itself say what to do.
var (
	errArchived = errors.New("the session is archived")
	errDenied   = errors.New("this is generated or belongs to the client: it cannot be changed through the mount")
)

// saysItself is for errors whose texts say what to do.
const saysItself = ""

// way is what the reader of an error of a kind can do.
type way struct {
	err error
	way string
}

// waysOutside come before waysOut where no session is concerned.
var waysOutside = []way{
	{sessioncore.ErrNotFound, "ls shows what is there"},
	{fs.ErrNotExist, "ls shows what is there"},
}

// waysOut says for each kind of error what its reader can do, in the order in which they are looked for: one that wraps
// several is of the first kind.
var waysOut = []way{
	{errArchived, saysItself},
	{errDenied, saysItself},
	{storage.ErrStale, "look again what is there, and then try again"},
	{storage.ErrLocked, "try again when the other writer is done"},
	{sessioncore.ErrBusy, saysItself},
	{storage.ErrTooMany, saysItself},
	{history.ErrBusy, "try again"},
	{search.ErrBusy, saysItself},
	{sessioncore.ErrInvalid, saysItself},
	{history.ErrQuery, `put what is to be found as it stands into double quotes`},
	{search.ErrQuery, saysItself},
	{sessioncore.ErrExists, "leave id out, and a new one is made"},
	{fs.ErrExist, "what has that name is kept: see in SOURCE what it is"},
	{sessioncore.ErrTooBig, "put the text into a file, and its path into the line"},
	{history.ErrTooBig, "ask the database in SOURCE with sqlite3"},
	{budget.ErrNoMemory, saysItself},
	{sent.ErrUnsupported, "without -o context=sent there is a context"},
	{sessioncore.ErrReadOnly, "mount without -o ro to write"},
	{writer.ErrWaiting, saysItself},
	{writer.ErrNoDirectory, "make it first"},
	{storage.ErrUnsupported, "it can be done where SOURCE is"},
	{sessioncore.ErrNotFound, "entries/ has the ids that are there"},
	{sessioncore.ErrNotSession, "see problems.jsonl, or the first line of the file"},
	{storage.ErrNotRegular, "only files are shown; see what it is in SOURCE"},
	{storage.ErrBadName, "choose a shorter name without control characters"},
	{fs.ErrNotExist, "look in SOURCE whether it was moved"},
	{syscall.ENOSPC, "make room where SOURCE is"},
	{syscall.EDQUOT, "make room where SOURCE is, or have the quota raised"},
	{syscall.EFBIG, "the file may not grow: see the limits of the process that serves the mount (ulimit -f)"},
	{syscall.ENAMETOOLONG, "choose a shorter one"},
	{syscall.ENOTDIR, "name a directory"},
	{syscall.EXDEV, "with the agent itself it can be done"},
	{syscall.EOPNOTSUPP, "with the agent itself it can be done"},
	{syscall.EROFS, "the file system of SOURCE is mounted read-only"},
	{fs.ErrPermission, "see the modes in SOURCE, and which user serves the mount"},
}

// unknownWay is for what the storage has failed with, and for defects of ours.
const unknownWay = "; the log of the mount has all such errors"

// wayOut returns what to do after an error about a session, or outside, as an addition to its text.
func wayOut(session string, err error) string {
	ways := waysOut
	if session == outside {
		ways = slices.Concat(waysOutside, waysOut)
	}
	for _, w := range ways {
		if errors.Is(err, w.err) {
			if w.way == saysItself {
				return ""
			}
			return "; " + w.way
		}
	}
	return unknownWay
}
