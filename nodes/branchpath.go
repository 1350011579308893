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
type BranchPathDir struct{ BranchDir }

func makeBranchPath(d *BranchDir) fusefs.InodeEmbedder {
	return &BranchPathDir{BranchDir{d.part(), d.name}}
}

// find finds an entry of the branch by the whole name: its number, what it is and the name of its file.
func (d *BranchPathDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	end, err := snap.FindBranch(d.name)
	if err != nil {
		return child{}, err
	}
	e, err := layout.FindPathName(snap, snap.Branch(end), it.name)
	if err != nil {
		return child{}, err
	}
	to := target{pathToSession + layout.EntryPath(snap, e), snap.Stat(), snap.Time(e)}
	return d.fixedLink(d.session, kindPathLink, to, out), nil
}

func (d *BranchPathDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
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
