package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// refusals holds for each session why the last write to it was refused, and under the name outside why the
// last look-up or write was that concerns no session.
type refusals struct {
	mu   sync.Mutex // guards last
	last map[string]refusal
}

// outside is the key of refusals that concern no session.
const outside = ""

type refusal struct {
	what string // the file that was written to, or the directory of the look-up
	text func() string
	at   time.Time
}

// refusalsOf returns what has those of a session; what concerns none is of the whole mount.
func (v *View) refusalsOf(session string) *refusals {
	if session == outside {
		v = v.whole()
	}
	return &v.refusals
}

// maxRefusals is for how many sessions a reason is kept; beyond that all are dropped, as a user looks at the last one
// only.
const maxRefusals = 1000

func (r *refusals) note(session string, last refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || len(r.last) >= maxRefusals {
		r.last = map[string]refusal{}
	}
	r.last[session] = last
}

// get returns the text of last-error and its time, the zero values if there is none.
func (r *refusals) get(session string) (text string, at time.Time) {
	r.mu.Lock()
	last, ok := r.last[session]
	r.mu.Unlock()
	if ok {
		text = last.text()
	}
	return text, last.at
}

// forget removes the reason of a session, if what is not empty only one that is about what.
func (r *refusals) forget(session, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what == "" || r.last[session].what == what {
		delete(r.last, session)
	}
}

// refuse records in last-error and in the log why a write to a session was refused, and returns the errno. Where a live
// client is the reason, its process is searched afterwards: the writer does not wait for that, but readers of last-error
// do.
func (v *View) refuse(session, what, path string, err error) syscall.Errno {
	errno := errnoOf(err)
	tell := v.noteRefusal(session, what, what, errno, err, func() {
		v.Log.Warn("refused", "op", "write", "path", path, "errno", errno, "why", err)
	})
	if errors.Is(err, sessioncore.ErrBusy) {
		go storage.Guarded(func() { tell() })()
	} else {
		tell()
	}
	return errno
}

// refuseLookup records why the look-up of a name in what, a directory outside of the sessions, was refused, and returns
// the errno.
func (v *View) refuseLookup(what, name, path string, err error) syscall.Errno {
	errno := errnoOf(err)
	v.noteRefusal(outside, what, what+"/"+name, errno, err, func() {
		v.Log.Info("refused", "op", "lookup", "path", path, "errno", errno, "why", err)
	})()
	return errno
}

// noteRefusal records a refusal whose text is made when the function that it returns, or a reader of last-error, first
// asks for it, after log.
func (v *View) noteRefusal(session, what, shown string, errno syscall.Errno, err error, log func()) (text func() string) {
	now := time.Now()
	text = sync.OnceValue(func() string {
		log()
		text := err.Error()
		if !strings.Contains(text, errno.Error()) { // as that of a system call does
			text += " (" + errno.Error() + ")"
		}
		return now.UTC().Format(refusedTime) + " " + oneLine(shown+": "+text+wayOut(session, err)) + "\n"
	})
	v.refusalsOf(session).note(session, refusal{what, text, now})
	return text
}

// refusedTime is the layout of times in last-error.
const refusedTime = "2006-01-02T15:04:05.000Z07:00"

// accepted clears last-error after a write that succeeded.
func (v *View) accepted(session string) { v.refusalsOf(session).forget(session, "") }

// found clears the root's last-error after a look-up in what that succeeded.
func (v *View) found(what string) { v.refusalsOf(outside).forget(outside, what) }

// database is what last-error in the root calls the database of a mount that has one.
const database = "database"

// memoryFull is the name in the root's last-error of a refusal that ends when files are closed.
const memoryFull = "memory"

// Lost records in the root's last-error that the database cannot be reached, until Back is called.
func (v *View) Lost(err error) {
	v.noteRefusal(outside, database, database, errnoOf(err), err, func() {})()
}

// LeaveOut records in the root's last-error that an agent is left out, and why.
func (v *View) LeaveOut(why string) {
	now := time.Now()
	text := now.UTC().Format(refusedTime) + " " + oneLine(why) + "\n"
	v.refusalsOf(outside).note(outside, refusal{layout.Sessions, func() string { return text }, now})
	v.Log.Warn("an agent is left out", "why", why)
}

// Back removes what Lost recorded.
func (v *View) Back() { v.found(database) }

// maxReason is the longest reason that is shown, in bytes: a reason may quote what was written.
const maxReason = 4 << 10

// oneLine shortens a text and escapes its control characters, so that it can be shown in a terminal.
func oneLine(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return string(names.TitleLine(strings.ToValidUTF8(text, "\uFFFD")))
}

// ofSession is a directory of one session. What only has to know which one it is in needs no more of the types above it.
type ofSession interface{ sessionName() string }

// inSession returns the session's name where n is in a session's directory.
func (n *node) inSession() (session string, ok bool) {
	for at := n.EmbeddedInode(); at != nil; _, at = at.Parent() {
		if d, ok := at.Operations().(ofSession); ok {
			return d.sessionName(), true
		}
	}
	return outside, false
}

// denyWrite refuses what would change n, or a name in it, where no write changes anything, and says in last-error what can
// be done. Tools such as rm -r ask for every name, which is no reason to warn in the log. A name that begins with a dot is in
// the log alone: editors that open a file try to make such a one beside it.
func (n *node) denyWrite(op string, name ...string) syscall.Errno {
	at := n.path(name...)
	session, ok := n.inSession()
	what, why, how := at, cmp.Or(n.view.Frozen, errDenied), ""
	if ok && why != errDenied {
		what = path.Base(at)
	}
	switch {
	case why == ErrForeign: // its kind says it
	case why == ErrArchived && ok:
		how = fmt.Sprintf("to change it, put it back in SOURCE: unpack archive/sessions/%[1]s.jsonl.gz to sessions/%[1]s.jsonl, and move the directory of its artifacts along, if it has one", layout.SessionDir(session))
	case why == ErrArchived:
		how = "it is changed in SOURCE only, and sessionfs import brings in sessions of elsewhere"
	case ok:
		how = "to change the session, write to append, labels, title or fork, or replace leaf; cwd moves it, and sessionfs import adds what a copy of it has more"
	default:
		how = "new-session makes sessions, and sessionfs import brings in those of elsewhere; in a session's directory append, labels, title, fork, cwd and leaf change it; the rest is changed in SOURCE"
	}
	errno, reason := errnoOf(why), why
	if how != "" {
		reason = fmt.Errorf("%w; %s", why, how)
	}
	log := func() { n.view.Log.Info("refused", "op", op, "path", at, "errno", errno, "why", why) }
	if len(name) > 0 && strings.HasPrefix(name[0], ".") {
		log()
		return errno
	}
	n.view.noteRefusal(session, what, what, errno, reason, log)()
	return errno
}

// The reasons that this package gives itself say what to do. The exported ones are reasons for View.Frozen.
var (
	ErrArchived = fmt.Errorf("%w: the session is archived", sessioncore.ErrReadOnly)
	ErrForeign  = fmt.Errorf("%w: sessions of this agent are written by it alone", sessioncore.ErrReadOnly)
	errDenied   = errors.New("this is generated or belongs to the client: it cannot be changed through the mount")
)

// errReplaced means that another thing is in the place of what a node stands for. The kernel then looks up the path again.
var errReplaced = fmt.Errorf("%w: it was replaced", storage.ErrStale)

// saysItself is for errors whose texts say what to do.
const saysItself = ""

// kindOfError is a kind of domain error: its errno, 0 for that of the system call that failed, and what its reader can do.
type kindOfError struct {
	err   error
	errno syscall.Errno
	way   string
}

// kindsOfError are the kinds, in the order in which they are looked for: an error that wraps several is of the first.
var kindsOfError = []kindOfError{
	{ErrArchived, syscall.EROFS, saysItself},
	{ErrForeign, syscall.EROFS, "sessionfs import makes an omp session of it"},
	{errDenied, syscall.EPERM, saysItself},
	{storage.ErrStale, syscall.ESTALE, "look again what is there, and then try again"},
	{storage.ErrLocked, syscall.EBUSY, "try again when the other writer is done"},
	{sessioncore.ErrBusy, syscall.EBUSY, saysItself},
	{writer.ErrNotOwn, syscall.EPERM, saysItself},
	{sessioncore.ErrInvalid, syscall.EINVAL, saysItself},
	{history.ErrQuery, syscall.EINVAL, `put the words that are to be found as they are into double quotes`},
	{search.ErrQuery, syscall.EINVAL, saysItself},
	{sessioncore.ErrExists, syscall.EEXIST, "leave id out, and a new one is made"},
	{fs.ErrExist, syscall.EEXIST, "what has that name is kept: see in SOURCE what it is"},
	{sessioncore.ErrTooBig, syscall.EFBIG, "put the text into a file, and its path into the line"},
	{history.ErrTooBig, syscall.EFBIG, "ask the database in SOURCE with sqlite3"},
	{budget.ErrNoMemory, syscall.ENOMEM, saysItself},
	{storage.ErrUnsupported, syscall.EOPNOTSUPP, "it can be done where SOURCE is"},
	{sessioncore.ErrReadOnly, syscall.EROFS, "mount without -o ro to write"},
	{writer.ErrNoDirectory, syscall.ENOENT, "make it first"},
	{sessioncore.ErrNotFound, syscall.ENOENT, "entries/ has the ids that are there"},
	{sessioncore.ErrNotSession, syscall.ENOENT, "see problems.jsonl, or the first line of the file"},
	{storage.ErrNotRegular, syscall.ENOENT, "only files are shown; see what it is in SOURCE"},
	{storage.ErrBadName, syscall.ENOENT, "choose a shorter name without control characters"},
	{fs.ErrNotExist, syscall.ENOENT, "look in SOURCE whether it was moved"},
	{context.Canceled, syscall.EINTR, saysItself},
	{context.DeadlineExceeded, syscall.EINTR, saysItself},
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

// unknownWay is for what the storage has failed with, and for defects of ours.
const unknownWay = "; the log of the mount has all such errors"

// errnoOf is the one function that turns domain errors into errnos (docs/design.md section 7).
func errnoOf(err error) syscall.Errno {
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

// kindOf returns the kind of an error; its err is nil if it is of none.
func kindOf(err error) kindOfError {
	for _, k := range kindsOfError {
		if errors.Is(err, k.err) {
			return k
		}
	}
	return kindOfError{way: unknownWay}
}

// wayOut returns what to do after an error about a session, or outside, as an addition to its text.
func wayOut(session string, err error) string {
	k := kindOf(err)
	switch {
	case session == outside && (k.err == sessioncore.ErrNotFound || k.err == fs.ErrNotExist):
		return "; ls shows what is there"
	case session == outside && k.err == writer.ErrNoDirectory:
		return `; make it first, or write {"cwd": …, "create": true}`
	case k.err == nil || k.way == saysItself:
		return k.way
	}
	return "; " + k.way
}

// staleIfGone makes an error ESTALE that says that the backing file of an existing node is gone: the kernel then
// looks up the path again.
func staleIfGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, sessioncore.ErrNotFound) ||
		errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, storage.ErrNotRegular) {
		return fmt.Errorf("%w: %w", storage.ErrStale, err)
	}
	return err
}

// fail returns the errno of what could not be done with n, or with a name in it, and logs the error unless the errno says
// it all.
func (n *node) fail(op string, err error, name ...string) syscall.Errno {
	errno := errnoOf(err)
	switch {
	case errno == 0, errno == syscall.ENOENT, errno == syscall.EINTR, errors.Is(err, errReplaced):
	case errno == syscall.EIO:
		n.view.Log.Error("backing I/O failed", "op", op, "path", n.path(name...), "err", err)
	default:
		n.view.Log.Warn("refused", "op", op, "path", n.path(name...), "errno", errno, "err", err)
	}
	if errors.Is(err, budget.ErrNoMemory) {
		what := n.path(name...)
		of := what
		if n.view.Memory.Full() != "" {
			of = memoryFull
		}
		n.view.noteRefusal(outside, of, what, errno, err, func() {})()
	}
	return errno
}
