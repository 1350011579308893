package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
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

// refusals holds the last refusal of a write to each session, and, under the name outside, the last refusal of
// a lookup or write outside of sessions.
type refusals struct {
	mu   sync.Mutex // guards last
	last map[string]refusal
}

// outside is the key of refusals that concern no session.
const outside = ""

// refusal is a refused write or lookup.
type refusal struct {
	subject string        // the file of the write, or the directory of the lookup
	text    func() string // returns the content of last-error; a caller may have to wait
	at      time.Time
}

// refusalsOf returns the refusals of the sessions in v, which include the given one, or for outside the ones of the
// root's View.
func (v *View) refusalsOf(session string) *refusals {
	if session == outside {
		return &v.rootView().refusals
	}
	return &v.refusals
}

// maxRefusals bounds the sessions with a reason; above it all are dropped, as users read the last.
const maxRefusals = 1000

// note makes a refusal the last one of a session, in place of the one before.
func (r *refusals) note(session string, last refusal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || len(r.last) >= maxRefusals {
		r.last = map[string]refusal{}
	}
	r.last[session] = last
}

// get returns the text of last-error and its time, the zero values if there is none. It may wait for the text,
// without the lock.
func (r *refusals) get(session string) (text string, at time.Time) {
	r.mu.Lock()
	last, ok := r.last[session]
	r.mu.Unlock()
	if ok {
		text = last.text()
	}
	return text, last.at
}

// forget removes the reason of a session, or with a subject only one about that subject.
func (r *refusals) forget(session, subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if subject == "" || r.last[session].subject == subject {
		delete(r.last, session)
	}
}

// refuse refuses a write to a session: it records the error in last-error and in the log, and returns the
// errno. subject is the name in last-error, and path the one in the log.
func (v *View) refuse(session, subject, path string, err error) syscall.Errno {
	return v.noteRefusal(session, subject, subject, err, func() {
		v.logRefusal(slog.LevelWarn, "write", path, err)
	})
}

// noteRefusal records a refusal with the text "TIME SHOWN: ERROR; HINT" in last-error, calls log and returns
// the errno. subject is the name that a later success removes the record by. For sessioncore.ErrBusy the text
// names the process of a live client, which is searched in the background: the writer does not wait for that,
// but readers of last-error do.
func (v *View) noteRefusal(session, subject, shown string, err error, log func()) syscall.Errno {
	now := time.Now()
	errno := Errno(err)
	makeText := sync.OnceValue(func() string {
		log()
		text := err.Error()
		hasErrno := strings.Contains(text, errno.Error()) // as a system call's error
		if !hasErrno {
			text += " (" + errno.Error() + ")"
		}
		return refusalLine(now, shown+": "+text+hintFor(session, err))
	})
	v.refusalsOf(session).note(session, refusal{subject: subject, text: makeText, at: now})
	if errors.Is(err, sessioncore.ErrBusy) {
		searchClient := storage.Guarded(func() { makeText() })
		go searchClient()
	} else {
		makeText()
	}
	return errno
}

// refusalLine returns the line of last-error for a text of any form.
func refusalLine(at time.Time, text string) string {
	return at.UTC().Format(refusedTime) + " " + oneLine(text) + "\n"
}

// logRefusal logs a refused operation.
func (v *View) logRefusal(level slog.Level, op, path string, err error) {
	v.Log.Log(context.Background(), level, "refused", "op", op, "path", path, "errno", Errno(err), "why", err)
}

// refusedTime is the layout of times in last-error.
const refusedTime = "2006-01-02T15:04:05.000Z07:00"

// clearRefusal clears last-error after a successful write.
func (v *View) clearRefusal(session string) { v.refusalsOf(session).forget(session, "") }

// clearLookup clears the root's last-error after a successful lookup in a directory.
func (v *View) clearLookup(dir string) { v.refusalsOf(outside).forget(outside, dir) }

// database is the name of a mount's database in the root's last-error.
const database = "database"

// memoryFull is the name in the root's last-error of a refusal that ends when files are closed.
const memoryFull = "memory"

// Lost records in the root's last-error that the database cannot be reached, until Back is called.
func (v *View) Lost(err error) {
	_ = v.noteRefusal(outside, database, database, err, func() {})
}

// LeaveOut records in the root's last-error why an agent is left out.
func (v *View) LeaveOut(why string) {
	v.noteLeftOut(layout.Sessions, why)
	v.Log.Warn("an agent is left out", "why", why)
}

// unknownFiles is the name in the root's last-error for files that no known agent wrote.
const unknownFiles = "strangers"

// LeaveOutFiles records in the root's last-error that a list leaves files out, for the reason why. "" removes
// the record.
func (v *View) LeaveOutFiles(why string) {
	if why == "" {
		v.clearLookup(unknownFiles)
		return
	}
	v.noteLeftOut(unknownFiles, why)
}

// noteLeftOut records in the root's last-error that something is left out. It is no refusal of a request, so
// the text has no errno.
func (v *View) noteLeftOut(subject, why string) {
	now := time.Now()
	line := refusalLine(now, why)
	v.refusalsOf(outside).note(outside, refusal{
		subject: subject,
		text:    func() string { return line },
		at:      now,
	})
}

// Back removes the record of Lost.
func (v *View) Back() { v.clearLookup(database) }

// maxReason bounds a reason in bytes, as it may quote the written text.
const maxReason = 4 << 10

// oneLine shortens a text and escapes its control characters, for terminals.
func oneLine(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	return string(names.TitleLine(strings.ToValidUTF8(text, "\uFFFD")))
}

// The errors of this package contain hints. The exported ones are reasons for View.Frozen.
var (
	ErrArchived = fmt.Errorf("%w: the session is archived", sessioncore.ErrReadOnly)
	ErrForeign  = fmt.Errorf("%w: sessions of this agent are written by it alone", sessioncore.ErrReadOnly)
	// ErrForkable is ErrForeign where the agent goes on from forks.
	ErrForkable = fmt.Errorf("%w", ErrForeign)
	errMasked   = fmt.Errorf("%w: secrets are masked", sessioncore.ErrReadOnly)
	errDenied   = errors.New("read-only: generated, or the agent's own file")
)

// errReplaced means that another node has the node's name now: the door repeats the lookup.
var errReplaced = fmt.Errorf("%w: it was replaced", storage.ErrStale)

// noHint is for errors with a hint in their texts.
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
	{ErrForkable, syscall.EROFS, "write an entry's id to fork, and the agent goes on from there in a new session; " +
		"sessionfs import makes an omp session of it"},
	{ErrForeign, syscall.EROFS, "sessionfs import makes an omp session of it"},
	{errMasked, syscall.EROFS, "mount without -o redact to write"},
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
const unknownHint = "the log of the mount has all such errors"

// Errno is the only function that turns domain errors into errnos (docs/design.md section 7). It returns 0 for
// nil, the errno of the kind of the error or else of the failed system call, and EIO for an unknown error.
func Errno(err error) syscall.Errno {
	if err == nil {
		return 0
	}
	k := kindOf(err)
	if k.errno != 0 {
		return k.errno
	}
	ofCall, isCall := errors.AsType[syscall.Errno](err)
	switch {
	case isCall:
		return ofCall
	case k.err == fs.ErrPermission:
		return syscall.EACCES
	}
	return syscall.EIO
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

// hintFor returns "; " and the hint for an error about a session, or outside; "" if it needs none.
func hintFor(session string, err error) string {
	k := kindOf(err)
	if session == outside {
		switch k.err {
		case sessioncore.ErrNotFound, fs.ErrNotExist:
			return "; ls shows what is there"
		case writer.ErrNoDirectory:
			return `; make it first, or write {"cwd": …, "create": true}`
		}
	}
	if k.hint == noHint {
		return ""
	}
	return "; " + k.hint
}

// goneErrors are errors that mean that a file is gone, or is no session any more.
var goneErrors = []error{fs.ErrNotExist, sessioncore.ErrNotFound, sessioncore.ErrNotSession, storage.ErrNotRegular}

// staleIfGone converts an error that means that the backing file of an existing node is gone to
// ESTALE, so that a door looks up the path once more. It returns other errors, and nil, as they are.
func staleIfGone(err error) error {
	for _, gone := range goneErrors {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", storage.ErrStale, err)
		}
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

// fail returns the errno of a failed operation. It logs unexpected errors, and a lack of memory also becomes
// the root's last refusal.
func (v *View) fail(op, path string, err error) syscall.Errno {
	errno := Errno(err)
	switch {
	case errors.Is(err, errReplaced):
		// A caller looks the name up once more.
	case errno == 0, errno == syscall.ENOENT, errno == syscall.EINTR:
		// Programs look for names that are not there all the time.
	case errno == syscall.EIO:
		v.Log.Error("backing I/O failed", "op", op, "path", path, "err", err)
	default:
		v.Log.Warn("refused", "op", op, "path", path, "errno", errno, "err", err)
	}
	if errors.Is(err, budget.ErrNoMemory) {
		subject := path
		if v.Memory.Full() != "" {
			subject = memoryFull
		}
		_ = v.noteRefusal(outside, subject, path, err, func() {})
	}
	return errno
}

// pathOf returns the path of a node from the mount's root. name is the name of a file or a link in its
// directory.
func pathOf(n Node, name string) string {
	_, isDir := n.(Dir)
	if isDir {
		return n.Base().path()
	}
	return n.Base().pathOf(name)
}

// nameIn returns the path of a name in a directory for last-error and the log.
func (d *Directory) nameIn(name string) string { return d.path() + "/" + name }

// Deny refuses a change of a node that accepts none, with a hint in last-error. name is the name of
// a file or a link in its directory. The log has no warning, as rm -r and others try every name.
func Deny(n Node, name, op string) syscall.Errno {
	return n.Base().deny(op, pathOf(n, name), false)
}

// DenyName is Deny for a name in a directory. A name with a leading dot is only logged: editors try
// to make one beside a file that they open.
func DenyName(d Dir, name, op string) syscall.Errno {
	dir := d.Base()
	return dir.deny(op, dir.nameIn(name), strings.HasPrefix(name, "."))
}

// deny refuses a change at the path at in the directory, and returns the errno. last-error has the reason and a
// hint, unless logOnly is set; there the subject is the path, or in a session where nothing can be changed the
// name alone.
func (d *Directory) deny(op, at string, logOnly bool) syscall.Errno {
	v := d.view
	why := v.unchangeable()
	if why == nil {
		why = errDenied
	}
	log := func() {
		v.logRefusal(slog.LevelInfo, op, at, why)
	}
	if logOnly {
		log()
		return Errno(why)
	}
	reason := why
	hint := d.hintForDenied(why)
	if hint != "" {
		reason = fmt.Errorf("%w; %s", why, hint)
	}
	subject := at
	if d.session != nil && why != errDenied {
		subject = path.Base(at)
	}
	return v.noteRefusal(d.sessionName(), subject, subject, reason, log)
}

// hintForDenied returns the hint for a denied change in the directory, "" if the kind of the error has one.
func (d *Directory) hintForDenied(why error) string {
	inSession := d.session != nil
	isArchived := why == ErrArchived
	hasHint := errors.Is(why, ErrForeign) || why == errMasked || why == sessioncore.ErrReadOnly
	switch {
	case hasHint:
		return ""
	case isArchived && inSession:
		return fmt.Sprintf("to change it, put it back in SOURCE: unpack archive/sessions/%[1]s.jsonl.gz to "+
			"sessions/%[1]s.jsonl, and move the directory of its artifacts along, if it has one",
			layout.SessionDir(d.sessionName()))
	case isArchived:
		return "it is changed in SOURCE only, and sessionfs import brings in sessions of elsewhere"
	case inSession:
		return "you can write append, labels, title, fork and cwd, and replace leaf"
	}
	return "you can write new-session, and in a session's directory append, labels, title, fork and cwd, and " +
		"replace leaf; sessionfs import brings in sessions; the rest is changed in SOURCE"
}

// IsUnchangeable reports whether nothing of the node's view accepts a change. Deny has the reason.
func IsUnchangeable(n Node) bool { return unchangeable(n) != nil }

// AttrChange is a request to set attributes; nil leaves one unchanged.
type AttrChange struct{ Mode, UID, GID *uint32 }

// SetAttr answers a request to set attributes. It changes nothing. For a Control and a LeafLink it
// ignores a size and times, for > and touch, cp -a and rsync -a, and refuses another mode or owner
// than the current one, which an editor's fchmod sets. Only the log records that, as last-error is
// about lines.
func SetAttr(ctx context.Context, n Node, name string, change AttrChange) (Attr, syscall.Errno) {
	v := n.Base().view
	_, isControl := n.(Control)
	_, isLeaf := n.(*LeafLink)
	isWritten := isControl || isLeaf
	if !isWritten || unchangeable(n) != nil {
		return Attr{}, Deny(n, name, "setattr")
	}
	a, err := n.Stat(ctx)
	if err != nil {
		return a, Stale(n, name, "stat", err)
	}
	if change.differs(a) {
		v.logRefusal(slog.LevelInfo, "setattr", pathOf(n, name), errDenied)
		return a, syscall.EPERM
	}
	return a, 0
}

// differs reports whether the request asks for another mode or owner than a has.
func (c AttrChange) differs(a Attr) bool {
	if c.Mode != nil {
		const allPermissions = 0o7777 // with set-user-ID and the like, without the file type
		wanted := *c.Mode & allPermissions
		if wanted != a.Mode {
			return true
		}
	}
	if c.UID != nil && *c.UID != a.UID {
		return true
	}
	return c.GID != nil && *c.GID != a.GID
}

// isCopying reports whether a node is a control file that only makes new sessions.
func isCopying(n Node) bool {
	f, isControl := n.(*ControlFile)
	return isControl && f.copies && f.view().Fork != nil
}

// frozen returns the reason why a node accepts no lines, or nil.
func frozen(n Node) error {
	if isCopying(n) {
		return nil
	}
	return n.Base().view.Frozen
}

// unchangeable returns the reason why a node accepts no change, also in a read-only mount; nil if there
// is none.
func unchangeable(n Node) error {
	v := n.Base().view
	if isCopying(n) && !v.ReadOnly && !v.Redacted {
		return nil
	}
	return v.unchangeable()
}

// OpenFile opens a file; flag is as in os.OpenFile. name is its name in its directory. Only a Control can be
// opened for writing. It can also in a read-only mount, where each line is refused with its reason. The caller
// must close the handle.
func OpenFile(ctx context.Context, f File, name string, flag int) (Handle, syscall.Errno) {
	if writes(flag) {
		_, isControl := f.(Control)
		if !isControl || frozen(f) != nil {
			return nil, Deny(f, name, "open")
		}
	}
	h, err := f.Open(ctx, flag)
	return h, Stale(f, name, "open", err)
}

// NoName returns the errno of a failed lookup. last-error has the reason if the directory is Noted,
// except for names such as .git, which programs look up in every directory.
func NoName(d Dir, name string, err error) syscall.Errno {
	v := d.Base().view
	at := d.Base().nameIn(name)
	noted := d.Noted()
	if noted == "" || name[0] == '.' {
		return v.fail("lookup", at, err)
	}
	return v.noteRefusal(outside, noted, noted+"/"+name, err, func() {
		v.logRefusal(slog.LevelInfo, "lookup", at, err)
	})
}
