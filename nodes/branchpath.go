package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// pathToSession is the way from branches/.by-id/<id>/path/ up to the session's directory.
const pathToSession = "../../../../"

// BranchPathDir is branches/<id>/path/: a link to each entry of a branch, in order, whose name says what
// the entry is.
type BranchPathDir struct {
	snapshotDir
	name string // of the branch in .by-id/
}

func makeBranchPath(_ context.Context, d *BranchDir, _ *sessioncore.Snapshot, _ sessioncore.Entry) (fusefs.InodeEmbedder, uint64, error) {
	return &BranchPathDir{snapshotDir: newSnapshotDir(d.view, d.session), name: d.name}, 0, nil
}

func (d *BranchPathDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	return d.fillBranch(ctx, d.session, d.name, out)
}

// lookupIn finds an entry of the branch by the whole name: its number, what it is and the name of its file.
func (d *BranchPathDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	end, err := snap.FindBranch(d.name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	branch := snap.Branch(end)
	e, err := layout.FindPathName(snap, branch, it.name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindPathLink, it.name, syscall.S_IFLNK)
	to := target{pathToSession + layout.EntryPath(snap, e), snap.Stat(), snap.Time(e)}
	return d.enterFixedLink(ctx, d.session, id, it.name, to, out)
}

func (d *BranchPathDir) listIn(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	end, err := snap.FindBranch(d.name)
	if err != nil {
		return nil, err
	}
	entries := snap.Branch(end).Entries()
	items := make([]item, len(entries))
	for place, e := range entries {
		items[place] = d.newItem(kindPathLink, layout.PathName(snap, place, e), syscall.S_IFLNK)
	}
	return items, nil
}
