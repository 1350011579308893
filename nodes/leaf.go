package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// LeafLink is leaf: a link to the entry at which the conversation stands, to tree before the first one. Its
// target is looked up each time it is read.
type LeafLink struct {
	node
	session *sessioncore.Session
}

func makeLeaf(d *SessionDir) fusefs.InodeEmbedder {
	return &LeafLink{node: node{view: d.view}, session: d.session}
}

func (l *LeafLink) target() (target string, st storage.Stat, err error) {
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
		return treeName, snap.Stat(), nil
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

var _ = (fusefs.NodeSetattrer)((*LeafLink)(nil))

// Setattr takes what cp -a and rsync -a give a link that they made, times and the owner that it has, and does
// nothing about it.
func (l *LeafLink) Setattr(_ context.Context, _ fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return l.setLinkAttr(l, in, out)
}

// setLinkAttr answers the Setattr of leaf and of what waits to be leaf.
func (l *LeafLink) setLinkAttr(a attributer, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if errno := l.getattr(a, out); errno != 0 {
		return errno
	}
	uid, setsUID := in.GetUID()
	gid, setsGID := in.GetGID()
	_, setsMode := in.GetMode()
	if setsMode || setsUID && uid != out.Uid || setsGID && gid != out.Gid {
		return l.view.deny("setattr", l.path(), syscall.EPERM, whyReadOnly)
	}
	return 0
}

var _ = (fusefs.NodeReadlinker)((*LeafLink)(nil))

// Readlink returns the leaf's file, or tree.
func (l *LeafLink) Readlink(context.Context) ([]byte, syscall.Errno) {
	target, _, err := l.target()
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	return []byte(target), 0
}
