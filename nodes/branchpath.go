package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

const pathName = "path"

// pathToSession leads from branches/.by-id/<id>/path/ up to the session's directory.
const pathToSession = "../../../../"

// BranchPathDir is branches/<id>/path/: a link to each entry of a branch, in order, whose name tells what
// the entry is.
type BranchPathDir struct {
	directory
	session *sessioncore.Session
	name    string // that .by-id/ has for the branch
}

func makeBranchPath(d *BranchDir, _ *sessioncore.Snapshot, _ sessioncore.Entry) (fusefs.InodeEmbedder, uint64, error) {
	return &BranchPathDir{directory: directory{node{view: d.view}}, session: d.session, name: d.name}, 0, nil
}

func (d *BranchPathDir) fillAttr(out *fuse.Attr) error { return d.fillBranch(d.session, d.name, out) }

func (d *BranchPathDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*BranchPathDir)(nil))

// Getattr tells the time of the branch's end.
func (d *BranchPathDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*BranchPathDir)(nil))

// Lookup finds an entry of the branch by its place, what it is and its name, all of which must be right.
func (d *BranchPathDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	return d.lookupName(ctx, snap, name, out)
}

func (d *BranchPathDir) lookupName(ctx context.Context, snap *sessioncore.Snapshot, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	end, err := snap.FindBranch(d.name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	branch := snap.Branch(end)
	place, err := branch.FindPathName(name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	e := branch.Entries()[place]
	id := stableAttr(d.StableAttr(), kindPathLink, name, syscall.S_IFLNK)
	return d.enterFixedLink(ctx, d.session, id, name, pathToSession+"entries/"+snap.Name(e)+entrySuffix, snap.Stat(), snap.Time(e), out)
}

var _ = (fusefs.NodeOpendirHandler)((*BranchPathDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *BranchPathDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openSessionListing(d)
}

func (d *BranchPathDir) list() ([]item, func(), error) {
	snap, end, err := findBranch(d.session, d.name)
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	branch, self := snap.Branch(end), d.StableAttr()
	items := make([]item, len(branch.Entries()))
	for place := range items {
		name := branch.PathName(place)
		id := stableAttr(self, kindPathLink, name, syscall.S_IFLNK)
		items[place] = item{name: name, mode: id.Mode, ino: id.Ino}
	}
	return items, nil, nil
}

func (d *BranchPathDir) acquire() (*sessioncore.Snapshot, error) { return d.session.Acquire() }

func (d *BranchPathDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.lookupName(ctx, snap, it.name, out)
}
