package nodes

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"time"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
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
	errno := Errno(err)
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
	errno := Errno(err)
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
	v.noteRefusal(outside, database, database, Errno(err), err, func() {})()
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
