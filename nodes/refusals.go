package nodes

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"
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
	text string
	at   time.Time
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

func (r *refusals) get(session string) (refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[session]
	return last, ok
}

// forget removes the reason of a session, if what is not empty only one that is about what.
func (r *refusals) forget(session, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if what == "" || r.last[session].what == what {
		delete(r.last, session)
	}
}

// refuse records in last-error and in the log why a write to a session was refused, and returns the errno.
func (v *View) refuse(session, what, path string, err error) syscall.Errno {
	errno := v.noteRefusal(session, what, what, err)
	v.Log.Warn("refused", "op", "write", "path", path, "errno", errno, "why", err)
	return errno
}

// refuseLookup records why the look-up of a name in what, a directory outside of the sessions, was refused, and returns
// the errno.
func (v *View) refuseLookup(what, name, path string, err error) syscall.Errno {
	errno := v.noteRefusal(outside, what, what+"/"+name, err)
	v.Log.Info("refused", "op", "lookup", "path", path, "errno", errno, "why", err)
	return errno
}

func (v *View) noteRefusal(session, what, shown string, err error) syscall.Errno {
	errno, now := errnoOf(err), time.Now()
	text := fmt.Sprintf("%s: %v (%s)", shown, err, errno.Error())
	v.refusals.note(session, refusal{what, now.UTC().Format(refusedTime) + " " + oneLine(text) + "\n", now})
	return errno
}

// refusedTime is the layout of times in last-error.
const refusedTime = "2006-01-02T15:04:05.000Z07:00"

// accepted clears last-error after a write that succeeded.
func (v *View) accepted(session string) { v.refusals.forget(session, "") }

// found clears the root's last-error after a look-up in what that succeeded.
func (v *View) found(what string) { v.refusals.forget(outside, what) }

// maxReason is the longest reason that is shown, in bytes: a reason may quote what was written.
const maxReason = 4 << 10

// oneLine shortens a text and escapes its control characters, so that it can be shown in a terminal.
func oneLine(text string) string {
	if len(text) > maxReason {
		text = text[:maxReason] + "…"
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) {
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
