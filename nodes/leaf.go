package nodes

import (
	"context"
	"fmt"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// LeafLink is leaf: a link to the entry at which the conversation stands. Its target is looked up each
// time it is read.
type LeafLink struct {
	node
	session *sessioncore.Session
}

func makeLeaf(d *SessionDir) fusefs.InodeEmbedder {
	return &LeafLink{node: node{view: d.view}, session: d.session}
}

func (l *LeafLink) target() (target string, st sessioncore.Stat, err error) {
	snap, err := l.session.Acquire()
	if err != nil {
		return "", st, err
	}
	defer snap.Release()
	leaf, err := snap.Leaf()
	if err != nil {
		return "", st, err
	}
	if leaf == sessioncore.NoEntry {
		return "", st, fmt.Errorf("%w: the leaf is before the first entry", sessioncore.ErrNotFound)
	}
	return "entries/" + snap.Name(leaf) + entrySuffix, snap.Stat(), nil
}

func (l *LeafLink) fillAttr(out *fuse.Attr) error {
	target, st, err := l.target()
	if err != nil {
		return err
	}
	fillLink(out, st, target)
	return nil
}

func (l *LeafLink) cache() cacheRule { return cacheNever }

var _ = (fusefs.NodeGetattrer)((*LeafLink)(nil))

// Getattr tells the length of the target.
func (l *LeafLink) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return l.getattr(l, out)
}

var _ = (fusefs.NodeReadlinker)((*LeafLink)(nil))

// Readlink returns the leaf's file.
func (l *LeafLink) Readlink(context.Context) ([]byte, syscall.Errno) {
	target, _, err := l.target()
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	return []byte(target), 0
}
