package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Link is a symbolic link whose target is found each time it is read: branches/current, a label in by-label/, a link
// of SOURCE; with attributes that the kernel may remember or that can be set, SessionLink, LeafLink and PendingLink.
type Link struct {
	node
	find findTarget
}

// findTarget finds where a link leads now.
type findTarget func(context.Context) (target, error)

// target is where a symbolic link leads, and what its attributes come from.
type target struct {
	path string
	st   storage.Stat // owner and times
	time time.Time    // both times; zero: those of st
}

func (l *Link) fillAttr(ctx context.Context, out *fuse.Attr) error {
	to, err := l.find(ctx)
	if err == nil {
		fillLink(out, to)
	}
	return err
}

// fillLink sets the attributes of a symbolic link.
func fillLink(out *fuse.Attr, to target) {
	out.Mode = syscall.S_IFLNK | 0o777
	out.Size = uint64(len(to.path))
	out.Nlink = 1
	fillOwner(out, to.st)
	if to.time.IsZero() {
		fillTimes(out, to.st.ModTime(), time.Unix(0, to.st.Changed))
	} else {
		fillTimes(out, to.time, to.time)
	}
}

var _ = (fusefs.NodeReadlinker)((*Link)(nil))

// Readlink returns where the link leads now.
func (l *Link) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	to, err := l.find(ctx)
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	return []byte(to.path), 0
}

// inSession returns a findTarget that looks in the current snapshot of a session, whose owner the link has. A zero
// time stands for the times of the session file.
func inSession(session *sessioncore.Session, find func(*sessioncore.Snapshot) (path string, t time.Time, err error)) findTarget {
	return func(ctx context.Context) (target, error) {
		snap, err := session.Acquire(ctx)
		if err != nil {
			return target{}, err
		}
		defer snap.Release()
		path, t, err := find(snap)
		return target{path, snap.Stat(), t}, err
	}
}
