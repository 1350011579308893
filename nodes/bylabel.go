package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

const byLabelName = "by-label"

// ByLabelDir is by-label/: a link to the entry that each label in effect is on, in the order in which the
// labels were set.
type ByLabelDir struct {
	directory
	session *sessioncore.Session
}

func makeByLabel(d *SessionDir) fusefs.InodeEmbedder {
	return &ByLabelDir{directory: directory{node{view: d.view}}, session: d.session}
}

func (d *ByLabelDir) fillAttr(out *fuse.Attr) error { return d.fillSessionDir(out, d.session) }

func (d *ByLabelDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*ByLabelDir)(nil))

// Getattr mirrors the session file.
func (d *ByLabelDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*ByLabelDir)(nil))

// Lookup finds a label.
func (d *ByLabelDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindLabelLink, name, syscall.S_IFLNK)
	return d.enter(d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &MovingLink{node: node{view: d.view}, session: d.session, find: func(snap *sessioncore.Snapshot) (string, time.Time, error) {
			l, err := snap.FindLabelName(name)
			if err != nil {
				return "", time.Time{}, err
			}
			return "../entries/" + snap.Name(l.Entry) + entrySuffix, l.Time, nil
		}}
	}), out)
}

var _ = (fusefs.NodeOpendirHandler)((*ByLabelDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *ByLabelDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openListing(d)
}

func (d *ByLabelDir) list() ([]item, func(), error) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	labels := snap.ByLabel()
	items := make([]item, len(labels))
	for i, l := range labels {
		id := stableAttr(d.StableAttr(), kindLabelLink, l.Name, syscall.S_IFLNK)
		items[i] = item{name: l.Name, mode: id.Mode, ino: id.Ino}
	}
	return items, nil, nil
}

func (d *ByLabelDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.Lookup(ctx, it.name, out)
}
