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

// pathOf returns the path of a node in the mount; name is that of a file or a link in its
// directory.
func pathOf(n Node, name string) string {
	if _, isDir := n.(Dir); isDir {
		return n.Base().path()
	}
	return n.Base().pathOf(name)
}

// nameIn returns the path of a name in a directory, as last-error and the log have it.
func (d *Directory) nameIn(name string) string { return d.path() + "/" + name }

// Deny refuses a change of a node where no write changes anything, and says in last-error how a
// session is changed. name is that of a file or a link in its directory. Tools such as rm -r ask
// for every name, which is no reason to warn in the log.
func Deny(n Node, name, op string) syscall.Errno {
	return n.Base().deny(op, pathOf(n, name), false)
}

// DenyName is Deny for a name in a directory. A name that begins with a dot is in the log alone:
// editors that open a file try to make such a one beside it.
func DenyName(d Dir, name, op string) syscall.Errno {
	dir := d.Base()
	return dir.deny(op, dir.nameIn(name), strings.HasPrefix(name, "."))
}

func (d *Directory) deny(op, at string, logOnly bool) syscall.Errno {
	v, session, inSession := d.view, outside, d.session != nil
	if inSession {
		session = d.session.Name()
	}
	what, why, how := at, cmp.Or(v.Frozen, errDenied), ""
	if inSession && why != errDenied {
		what = path.Base(at)
	}
	switch {
	case why == ErrForeign: // its kind says it
	case why == ErrArchived && inSession:
		how = fmt.Sprintf("to change it, put it back in SOURCE: unpack archive/sessions/%[1]s.jsonl.gz to "+
			"sessions/%[1]s.jsonl, and move the directory of its artifacts along, if it has one", layout.SessionDir(session))
	case why == ErrArchived:
		how = "it is changed in SOURCE only, and sessionfs import brings in sessions of elsewhere"
	case inSession:
		how = "to change the session, write to append, labels, title or fork, or replace leaf; cwd moves it, and sessionfs " +
			"import adds what a copy of it has more"
	default:
		how = "new-session makes sessions, and sessionfs import brings in those of elsewhere; in a session's directory " +
			"append, labels, title, fork, cwd and leaf change it; the rest is changed in SOURCE"
	}
	errno, reason := Errno(why), why
	if how != "" {
		reason = fmt.Errorf("%w; %s", why, how)
	}
	log := func() { v.Log.Info("refused", "op", op, "path", at, "errno", errno, "why", why) }
	if logOnly {
		log()
		return errno
	}
	v.noteRefusal(session, what, what, errno, reason, log)()
	return errno
}

// AttrChange is a request to set attributes; nil leaves one as it is.
type AttrChange struct{ Mode, UID, GID *uint32 }

// Settable is a node of which programs set a size and times, as > and touch, an editor's fchmod, cp
// -a and rsync -a do.
type Settable interface {
	Node
	// Settable does nothing.
	Settable()
}

// SetAttr answers a request to set attributes. Nothing is changed: of a Settable, a size and times
// are ignored, and a mode or an owner that is not the one that there is is refused. The log has
// that, but not last-error, which is about lines.
func SetAttr(ctx context.Context, n Node, name string, to AttrChange) (Attr, syscall.Errno) {
	v := n.Base().view
	if _, ok := n.(Settable); !ok || v.Frozen != nil {
		return Attr{}, Deny(n, name, "setattr")
	}
	a, err := n.Stat(ctx)
	if err != nil {
		return a, Fail(n, name, "stat", staleIfGone(err))
	}
	differs := func(to *uint32, is uint32) bool { return to != nil && *to != is }
	if to.Mode != nil && *to.Mode&07777 != a.Mode || differs(to.UID, a.UID) || differs(to.GID, a.GID) {
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

// NoName returns the errno of a look-up that failed. Programs look for .git and the like in every
// directory; that is not noted.
func NoName(d Dir, name string, err error) syscall.Errno {
	dir := d.Base()
	if noted := d.Noted(); noted != "" && name[0] != '.' {
		return dir.view.refuseLookup(noted, name, dir.nameIn(name), err)
	}
	return dir.view.fail("lookup", dir.nameIn(name), err)
}
