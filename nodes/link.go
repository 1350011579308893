package nodes

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Link is a symbolic link whose target is found each time it is read: branches/current, a label in by-label/, a link
// of SOURCE, and with an own rule links to sessions and links that lead to one place.
type Link struct {
	node
	find findTarget
	rule *cacheRule // nil for cacheNever
}

func (l *Link) cache() cacheRule {
	if l.rule == nil {
		return cacheNever
	}
	return *l.rule
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
		return nil, l.fail("readlink", staleIfGone(err))
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

// link is the child that is such a link.
func (n *node) link(k kind, rule *cacheRule, find findTarget) child {
	return child{kind: k, mode: syscall.S_IFLNK, make: func() fusefs.InodeEmbedder {
		return &Link{node: node{view: n.view}, find: find, rule: rule}
	}}
}

// fixedLink is a link whose target does not change while the session only grows: in tree/ entry.json, which leads to the
// entry's file, or a child whose directory is in .deep; a branch in branches/; an entry in path/. After a rewrite of the
// session, a link with another target or time is another node. It sets the attributes.
func (n *node) fixedLink(session *sessioncore.Session, k kind, to target, out *fuse.Attr) child {
	fillLink(out, to)
	path, time := to.path, to.time
	c := n.link(k, &cacheSecond, func(ctx context.Context) (target, error) {
		st, err := session.Probe(ctx)
		if err != nil {
			err = fmt.Errorf("the session of %s: %w", path, err)
		}
		return target{path, st, time}, err
	})
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(path), time.UnixMilli(), 10))
	c.content = sum.Sum64()
	return c
}
