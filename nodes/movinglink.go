package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// findTarget tells where a link leads in a snapshot, and its time; the zero time stands for that of the
// session file. ErrNotFound where there is no such link.
type findTarget func(*sessioncore.Snapshot) (target string, t time.Time, err error)

// MovingLink is a link that leads elsewhere as the session goes on: branches/current, a label in by-label/.
// Its target is looked up each time it is read.
type MovingLink struct {
	node
	session *sessioncore.Session
	find    findTarget
}

func (l *MovingLink) fillAttr(out *fuse.Attr) error {
	snap, err := l.session.Acquire()
	if err != nil {
		return err
	}
	defer snap.Release()
	target, t, err := l.find(snap)
	if err != nil {
		return err
	}
	fillLink(out, snap.Stat(), target)
	if !t.IsZero() {
		fillTimes(out, t, t)
	}
	return nil
}

func (l *MovingLink) cache() cacheRule { return cacheNever }

var _ = (fusefs.NodeGetattrer)((*MovingLink)(nil))

// Getattr tells the length of the target.
func (l *MovingLink) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return l.getattr(l, out)
}

var _ = (fusefs.NodeReadlinker)((*MovingLink)(nil))

// Readlink returns where the link leads now.
func (l *MovingLink) Readlink(context.Context) ([]byte, syscall.Errno) {
	snap, err := l.session.Acquire()
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	defer snap.Release()
	target, _, err := l.find(snap)
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	return []byte(target), 0
}
