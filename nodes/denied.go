package nodes

import (
	"fmt"
	"path"
	"syscall"

	"sessionfs/nodes/layout"
)

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
// be done. Tools such as rm -r ask for every name, which is no reason to warn in the log.
func (n *node) denyWrite(op string, name ...string) syscall.Errno {
	at := n.path(name...)
	session, ok := n.inSession()
	in, what, why, how := n.view, at, errDenied, ""
	switch archived := n.view.Archived(); {
	case archived && ok:
		what, why = path.Base(at), errArchived
		how = fmt.Sprintf("to change it, put it back in SOURCE: unpack archive/sessions/%[1]s.jsonl.gz to sessions/%[1]s.jsonl, and move the directory of its artifacts along, if it has one", layout.SessionDir(session))
	case archived:
		in, why = n.view.Live, errArchived
		how = "it is changed in SOURCE only, and sessionfs import brings in sessions of elsewhere"
	case ok:
		how = "to change the session, write to append, labels, title or fork, or replace leaf; cwd moves it, and sessionfs import adds what a copy of it has more"
	default:
		how = "new-session makes sessions, and sessionfs import brings in those of elsewhere; in a session's directory append, labels, title, fork, cwd and leaf change it; the rest is changed in SOURCE"
	}
	errno := errnoOf(why)
	in.noteRefusal(session, what, what, errno, fmt.Errorf("%w; %s", why, how), func() {
		n.view.Log.Info("refused", "op", op, "path", at, "errno", errno, "why", why)
	})()
	return errno
}
