package nodes

import (
	"fmt"
	"path"
	"syscall"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
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
	return "", false
}

// denyArchived refuses a change of something in archive/, and says in last-error what can be done.
func (n *node) denyArchived(file string) syscall.Errno {
	session, ok := n.inSession()
	if !ok {
		err := fmt.Errorf("%w: %w: it is changed in SOURCE only, and sessionfs import brings in sessions of elsewhere", sessioncore.ErrReadOnly, errArchived)
		return n.view.noteArchived(n.view.Live, outside, file, file, err)
	}
	name := layout.SessionDir(session)
	err := fmt.Errorf("%w: %w; to change it, put it back in SOURCE: unpack archive/sessions/%s.jsonl.gz to sessions/%s.jsonl, and move the directory of its artifacts along, if it has one",
		sessioncore.ErrReadOnly, errArchived, name, name)
	return n.view.noteArchived(n.view, session, path.Base(file), file, err)
}

// noteArchived records a refusal in the last-error of a session in a view. Tools such as rm -r ask for every name, which
// is no reason to fill the log.
func (v *View) noteArchived(in *View, session, what, file string, err error) syscall.Errno {
	errno := errnoOf(err)
	in.noteRefusal(session, what, what, errno, err, func() {
		v.Log.Info("refused", "path", file, "errno", errno, "why", "it is archived")
	})()
	return errno
}
