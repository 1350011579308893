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

// refusals holds the reason for which the last write to each session was refused, and under the
// name outside that of the last lookup or write outside of sessions.
type refusals struct {
	mu   sync.Mutex // guards last
	last map[string]refusal
}

// outside is the key of refusals that concern no session.
const outside = ""

type refusal struct {
	subject string // the file of the write, or the directory of the lookup
	text    func() string
	at      time.Time
}

// refusalsOf returns the refusals with a session's; the root's View has those outside of sessions.
func (v *View) refusalsOf(session string) *refusals {
	if session == outside {
		v = v.rootView()
	}
	return &v.refusals
}

// maxRefusals bounds the sessions with a reason; above it all are dropped, as users read the last.
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

// forget removes the reason of a session, or with a subject only one about that subject.
func (r *refusals) forget(session, subject string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if subject == "" || r.last[session].subject == subject {
		delete(r.last, session)
	}
}

// refuse records in last-error and in the log the reason for which a write to a session was
// refused, and returns the errno. The process of a live client is searched afterwards: the writer
// does not wait for that, but readers of last-error do.
func (v *View) refuse(session, subject, path string, err error) syscall.Errno {
	errno := Errno(err)
	makeText := v.noteRefusal(session, subject, subject, errno, err, func() {
		v.Log.Warn("refused", "op", "write", "path", path, "errno", errno, "why", err)
	})
	if errors.Is(err, sessioncore.ErrBusy) {
		go storage.Guarded(func() { makeText() })()
	} else {
		makeText()
	}
	return errno
}

// refuseLookup records the reason for which the lookup of a name in a directory outside of the
// sessions was refused, and returns the errno.
func (v *View) refuseLookup(dir, name, path string, err error) syscall.Errno {
	errno := Errno(err)
	v.noteRefusal(outside, dir, dir+"/"+name, errno, err, func() {
		v.Log.Info("refused", "op", "lookup", "path", path, "errno", errno, "why", err)
	})()
	return errno
}

// noteRefusal records a refusal. Its text is made, after a call of log, by the first call of the
// returned function or the first reader of last-error.
func (v *View) noteRefusal(
	session, subject, shown string, errno syscall.Errno, err error, log func(),
) (text func() string) {
	now := time.Now()
	text = sync.OnceValue(func() string {
		log()
		text := err.Error()
		if !strings.Contains(text, errno.Error()) { // a system call's error does
			text += " (" + errno.Error() + ")"
		}
		return now.UTC().Format(refusedTime) + " " + oneLine(shown+": "+text+hintFor(session, err)) + "\n"
	})
	v.refusalsOf(session).note(session, refusal{subject, text, now})
	return text
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
	v.noteRefusal(outside, database, database, Errno(err), err, func() {})()
}

// LeaveOut records in the root's last-error the reason for which an agent is left out.
func (v *View) LeaveOut(why string) {
	now := time.Now()
	text := now.UTC().Format(refusedTime) + " " + oneLine(why) + "\n"
	v.refusalsOf(outside).note(outside, refusal{layout.Sessions, func() string { return text }, now})
	v.Log.Warn("an agent is left out", "why", why)
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
