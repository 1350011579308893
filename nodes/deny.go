package nodes

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"strings"
	"syscall"

	"sessionfs/nodes/layout"
)

// pathOf returns the path of a node; name is that of a file or a link in its directory.
func pathOf(n Node, name string) string {
	if _, isDir := n.(Dir); isDir {
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

func (d *Directory) deny(op, at string, logOnly bool) syscall.Errno {
	v, session, inSession := d.view, outside, d.session != nil
	if inSession {
		session = d.session.Name()
	}
	subject, why, hint := at, cmp.Or(v.Frozen, errDenied), ""
	if inSession && why != errDenied {
		subject = path.Base(at)
	}
	switch {
	case why == ErrForeign: // its kind has a hint
	case why == ErrArchived && inSession:
		hint = fmt.Sprintf("to change it, put it back in SOURCE: unpack archive/sessions/%[1]s.jsonl.gz to "+
			"sessions/%[1]s.jsonl, and move the directory of its artifacts along, if it has one",
			layout.SessionDir(session))
	case why == ErrArchived:
		hint = "it is changed in SOURCE only, and sessionfs import brings in sessions of elsewhere"
	case inSession:
		hint = "to change the session, write to append, labels, title or fork, or replace leaf; cwd moves it, and " +
			"sessionfs import adds what a copy of it has more"
	default:
		hint = "new-session makes sessions, and sessionfs import brings in those of elsewhere; in a session's " +
			"directory append, labels, title, fork, cwd and leaf change it; the rest is changed in SOURCE"
	}
	errno, reason := Errno(why), why
	if hint != "" {
		reason = fmt.Errorf("%w; %s", why, hint)
	}
	log := func() { v.Log.Info("refused", "op", op, "path", at, "errno", errno, "why", why) }
	if logOnly {
		log()
		return errno
	}
	v.noteRefusal(session, subject, subject, errno, reason, log)()
	return errno
}

// AttrChange is a request to set attributes; nil leaves one unchanged.
type AttrChange struct{ Mode, UID, GID *uint32 }

// Settable is a node of which programs set a size and times, like > and touch, cp -a and rsync -a.
type Settable interface {
	Node
	// Settable does nothing.
	Settable()
}

// SetAttr answers a request to set attributes. It changes nothing: for a Settable it ignores a size
// and times, and refuses another mode or owner than the current one. Only the log records that, as
// last-error is about lines.
func SetAttr(ctx context.Context, n Node, name string, change AttrChange) (Attr, syscall.Errno) {
	v := n.Base().view
	if _, ok := n.(Settable); !ok || v.Frozen != nil {
		return Attr{}, Deny(n, name, "setattr")
	}
	a, err := n.Stat(ctx)
	if err != nil {
		return a, Fail(n, name, "stat", staleIfGone(err))
	}
	differs := func(wanted *uint32, current uint32) bool { return wanted != nil && *wanted != current }
	isMode := change.Mode == nil || *change.Mode&07777 == a.Mode
	if !isMode || differs(change.UID, a.UID) || differs(change.GID, a.GID) {
		v.Log.Info("refused", "op", "setattr", "path", pathOf(n, name), "errno", syscall.EPERM, "why", errDenied)
		return a, syscall.EPERM
	}
	return a, 0
}

// OpenFile opens a file; flag is as in os.OpenFile. Only a Control can be opened for writing.
func OpenFile(ctx context.Context, f File, name string, flag int) (Handle, syscall.Errno) {
	if _, ok := f.(Control); writes(flag) && (!ok || f.Base().view.Frozen != nil) {
		return nil, Deny(f, name, "open")
	}
	h, err := f.Open(ctx, flag)
	if err != nil {
		return nil, Fail(f, name, "open", staleIfGone(err))
	}
	return h, 0
}

// NoName returns the errno of a failed lookup. Names such as .git, for which programs look in every
// directory, are not recorded.
func NoName(d Dir, name string, err error) syscall.Errno {
	dir := d.Base()
	if noted := d.Noted(); noted != "" && name[0] != '.' {
		return dir.view.refuseLookup(noted, name, dir.nameIn(name), err)
	}
	return dir.view.fail("lookup", dir.nameIn(name), err)
}
