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

// BranchesDir is branches/: a link to the current branch and one to the branch of each tip, newest first. The
// branch to every other entry can be looked up too. All links lead into .by-id/, which is listed so that users
// can see where they lead.
type BranchesDir struct{ snapshotDir }

func makeBranches(d *snapshotDir) fusefs.InodeEmbedder {
	return &BranchesDir{newSnapshotDir(d.view, d.session)}
}

// names are the fixed names, in order: the one list that drives Lookup and listing.
func (d *BranchesDir) names() []Name {
	return []Name{
		{Name: layout.BranchIDs, Mode: syscall.S_IFDIR, Make: func() fusefs.InodeEmbedder {
			return &BranchIDsDir{snapshotDir: newSnapshotDir(d.view, d.session)}
		}},
		{Name: layout.CurrentBranch, Mode: syscall.S_IFLNK, Make: func() fusefs.InodeEmbedder {
			return &Link{node: node{view: d.view}, find: inSession(d.session, currentBranch)}
		}},
	}
}

// lookupIn finds a fixed name, or the branch to any entry, by a link.
func (d *BranchesDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	name := it.name
	for _, n := range d.names() {
		if n.Name == name {
			return d.enterName(ctx, n, out)
		}
	}
	e, err := snap.FindBranchName(name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindBranchLink, name, syscall.S_IFLNK)
	return d.enterFixedLink(ctx, d.session, id, name, target{layout.BranchIDs + "/" + snap.Name(e), snap.Stat(), snap.Time(e)}, out)
}

// currentBranch returns the target of branches/current, the branch that ends at the leaf.
func currentBranch(snap *sessioncore.Snapshot) (target string, t time.Time, err error) {
	leaf, err := layout.CurrentLeaf(snap)
	if err != nil {
		return "", t, err
	}
	return layout.BranchIDs + "/" + snap.Name(leaf), t, nil
}

func (d *BranchesDir) listIn(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	tips := snap.Tips()
	items := make([]item, 0, len(tips)+2)
	for _, n := range d.names() {
		if n.Name != layout.CurrentBranch || leaf != sessioncore.NoEntry {
			items = append(items, d.newItem(kindStatic, n.Name, n.Mode))
		}
	}
	for _, e := range tips {
		items = append(items, d.newItem(kindBranchLink, snap.BranchName(e), syscall.S_IFLNK))
	}
	return items, nil
}

// BranchIDsDir is branches/.by-id/: the branch to every entry, by the name of the entry's file. It
// lists nothing: all branches together are far longer than the session (docs/design.md, Crawlers).
type BranchIDsDir struct {
	snapshotDir
	listsNothing
}

// lookupIn finds the branch to any entry.
func (d *BranchIDsDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	name := it.name
	e, err := snap.FindBranch(name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindBranch, name, syscall.S_IFDIR)
	child := d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &BranchDir{snapshotDir: newSnapshotDir(d.view, d.session), name: name}
	})
	d.fillBranchDir(snap, e, &out.Attr)
	d.setTimeoutsOf(child, out)
	return child, 0
}
