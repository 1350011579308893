package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

const (
	branchesName = "branches"
	byIDName     = ".by-id"
	// currentName is the one fixed name in branches/ that an id could look like; such an id has its first byte
	// encoded there (docs/design.md section 1, Names).
	currentName = "current"
)

// BranchesDir is branches/: a link to the current branch and one to that of each tip, newest first. The
// branch to every other entry can be looked up too. They all lead into .by-id/, which is listed for the
// sake of those who wonder where the links go.
type BranchesDir struct {
	directory
	session *sessioncore.Session
}

func makeBranches(d *SessionDir) fusefs.InodeEmbedder {
	return &BranchesDir{directory: directory{node{view: d.view}}, session: d.session}
}

func (d *BranchesDir) fillAttr(out *fuse.Attr) error { return d.fillSessionDir(out, d.session) }

func (d *BranchesDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*BranchesDir)(nil))

// Getattr mirrors the session file.
func (d *BranchesDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*BranchesDir)(nil))

// Lookup finds the branch to any entry, by a link.
func (d *BranchesDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	return d.lookupName(ctx, snap, name, out)
}

func (d *BranchesDir) lookupName(ctx context.Context, snap *sessioncore.Snapshot, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	switch name {
	case byIDName:
		id := stableAttr(d.StableAttr(), kindStatic, name, syscall.S_IFDIR)
		return d.enter(d.child(ctx, id, name, func() fusefs.InodeEmbedder {
			return &BranchIDsDir{directory: directory{node{view: d.view}}, session: d.session}
		}), out)
	case currentName:
		id := stableAttr(d.StableAttr(), kindStatic, name, syscall.S_IFLNK)
		return d.enter(d.child(ctx, id, name, func() fusefs.InodeEmbedder {
			return &MovingLink{node: node{view: d.view}, session: d.session, find: currentBranch}
		}), out)
	}
	e, err := snap.FindBranchName(name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindBranchLink, name, syscall.S_IFLNK)
	return d.enterFixedLink(ctx, d.session, id, name, byIDName+"/"+snap.Name(e), snap.Stat(), snap.Time(e), out)
}

// currentBranch finds the branch on which the leaf stands.
func currentBranch(snap *sessioncore.Snapshot) (target string, t time.Time, err error) {
	leaf, err := currentLeaf(snap)
	if err != nil {
		return "", t, err
	}
	return byIDName + "/" + snap.Name(leaf), t, nil
}

var _ = (fusefs.NodeOpendirHandler)((*BranchesDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *BranchesDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openSessionListing(d)
}

func (d *BranchesDir) list() ([]item, func(), error) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, nil, err
	}
	self, tips := d.StableAttr(), snap.Tips()
	items := make([]item, 0, len(tips)+2)
	add := func(name string, k kind, mode uint32) {
		id := stableAttr(self, k, name, mode)
		items = append(items, item{name: name, mode: mode, ino: id.Ino})
	}
	add(byIDName, kindStatic, syscall.S_IFDIR)
	if leaf != sessioncore.NoEntry {
		add(currentName, kindStatic, syscall.S_IFLNK)
	}
	for _, e := range tips {
		add(snap.BranchName(e), kindBranchLink, syscall.S_IFLNK)
	}
	return items, nil, nil
}

func (d *BranchesDir) acquire() (*sessioncore.Snapshot, error) { return d.session.Acquire() }

func (d *BranchesDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.lookupName(ctx, snap, it.name, out)
}

// BranchIDsDir is branches/.by-id/: the branch to every entry, by the name that entries/ has for it. It
// lists nothing, for all the paths together are far longer than the session (docs/design.md, Crawlers).
type BranchIDsDir struct {
	directory
	session *sessioncore.Session
}

func (d *BranchIDsDir) fillAttr(out *fuse.Attr) error { return d.fillSessionDir(out, d.session) }

func (d *BranchIDsDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*BranchIDsDir)(nil))

// Getattr mirrors the session file.
func (d *BranchIDsDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*BranchIDsDir)(nil))

// Lookup finds the branch to any entry.
func (d *BranchIDsDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	e, err := snap.FindBranch(name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindBranch, name, syscall.S_IFDIR)
	child := d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &BranchDir{directory: directory{node{view: d.view}}, session: d.session, name: name}
	})
	d.fillBranchDir(snap, e, &out.Attr)
	setTimeouts(out, cacheSecond)
	return child, 0
}

var _ = (fusefs.NodeOpendirHandler)((*BranchIDsDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *BranchIDsDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openListing(d)
}

func (d *BranchIDsDir) list() ([]item, func(), error) { return nil, nil, nil }

func (d *BranchIDsDir) lookupItem(context.Context, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.ENOENT
}
