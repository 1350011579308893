package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// LeafLink is leaf: a link to the entry at which the conversation stands, or to tree if that is before the first entry.
// A link that waits to be renamed to leaf is one too: the kernel keeps the node under the new name.
type LeafLink struct {
	Link
	waits bool // it was made under another name
}

func makeLeaf(d *SessionDir) fusefs.InodeEmbedder {
	return &LeafLink{Link: Link{node: node{view: d.view}, find: inSession(d.session, leafPath)}}
}

// leafPath returns the target of leaf.
func leafPath(snap *sessioncore.Snapshot) (path string, t time.Time, err error) {
	leaf, err := snap.Leaf()
	switch {
	case err != nil:
		return "", t, err
	case leaf == sessioncore.NoEntry:
		return layout.Tree, t, nil
	}
	return layout.EntryPath(snap, leaf), t, nil
}

// kept reports whether the node must stay although nobody uses it: the link is about to be renamed.
func (l *LeafLink) kept() bool { return l.waits }

var _ = (fusefs.NodeSetattrer)((*LeafLink)(nil))

// Setattr accepts and ignores what cp -a and rsync -a set on a link that they made: times and the owner that it has.
func (l *LeafLink) Setattr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if errno := l.Getattr(ctx, fh, out); errno != 0 {
		return errno
	}
	if l.view.Archived() {
		return l.denyWrite("setattr")
	}
	if _, setsMode := in.GetMode(); setsMode || setsOwner(in, out) {
		return l.denyWrite("setattr")
	}
	return 0
}
