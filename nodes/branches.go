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

func makeBranches(d *SessionDir) fusefs.InodeEmbedder { return &BranchesDir{d.part()} }

// find finds a fixed name, or the branch to any entry, by a link.
func (d *BranchesDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	switch it.name {
	case layout.BranchIDs:
		return child{kind: kindStatic, mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
			return &BranchIDsDir{d.part()}
		}}, nil
	case layout.CurrentBranch:
		return d.link(kindStatic, nil, inSession(d.session, currentBranch)), nil
	}
	e, err := snap.FindBranchName(it.name)
	if err != nil {
		return child{}, err
	}
	to := target{layout.BranchIDs + "/" + snap.Name(e), snap.Stat(), snap.Time(e)}
	return d.fixedLink(d.session, kindBranchLink, to, out), nil
}

// currentBranch returns the target of branches/current, the branch that ends at the leaf.
func currentBranch(snap *sessioncore.Snapshot) (target string, t time.Time, err error) {
	leaf, err := layout.CurrentLeaf(snap)
	if err != nil {
		return "", t, err
	}
	return layout.BranchIDs + "/" + snap.Name(leaf), t, nil
}

func (d *BranchesDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	tips := snap.Tips()
	items := make([]item, 0, len(tips)+2)
	items = append(items, d.newItem(kindStatic, layout.BranchIDs, syscall.S_IFDIR))
	if leaf != sessioncore.NoEntry {
		items = append(items, d.newItem(kindStatic, layout.CurrentBranch, syscall.S_IFLNK))
	}
	for _, e := range tips {
		items = append(items, d.newItem(kindBranchLink, snap.BranchName(e), syscall.S_IFLNK))
	}
	return items, nil
}

// BranchIDsDir is branches/.by-id/: the branch to every entry, by the name of the entry's file. It
// lists nothing: all branches together are far longer than the session (docs/design.md, Crawlers).
type BranchIDsDir struct{ snapshotDir }

// find finds the branch to any entry.
func (d *BranchIDsDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	e, err := snap.FindBranch(it.name)
	if err != nil {
		return child{}, err
	}
	d.fillBranchDir(snap, e, out)
	return child{kind: kindBranch, mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		return &BranchDir{d.part(), it.name}
	}}, nil
}
