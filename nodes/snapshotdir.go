package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
)

// snapshotDir is the base of the directories that show a part of a session: their names are found in a snapshot.
type snapshotDir struct {
	directory
	lookupCount
	session *sessioncore.Session
}

func newSnapshotDir(view *View, session *sessioncore.Session) snapshotDir {
	return snapshotDir{directory: directory{node{view: view}}, session: session}
}

// fillAttr mirrors the session file.
func (d *snapshotDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := d.session.Probe(ctx)
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	return nil
}

func (d *snapshotDir) acquire(ctx context.Context) (*sessioncore.Snapshot, error) {
	return d.session.Acquire(ctx)
}

// member is the session among those in which parents and children are looked for.
func (d *snapshotDir) member() listing.Member {
	return listing.Member{Listing: d.view.Listing, Session: d.session}
}

// unnumbered is the number of an item that was not listed.
const unnumbered = -1

var _ = (fusefs.NodeLookuper)((*snapshotDir)(nil))

// Lookup finds a name in the current snapshot.
func (d *snapshotDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	dir, ok := d.Operations().(interface {
		lookupIn(context.Context, *sessioncore.Snapshot, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno)
	})
	if !ok {
		return nil, syscall.ENOENT
	}
	d.n.Add(1)
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	return dir.lookupIn(ctx, snap, item{name: name, number: unnumbered}, out)
}
