package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// TreeDir is tree/, tree/.deep/ or the directory of an entry below one of them: directories that mirror parentId. tree/
// lists the roots and .deep, which lists the entries at which the nesting continues; in both every entry can be looked up
// (docs/design.md, tree/). The directory of an entry has entry.json and a directory for each child.
type TreeDir struct {
	snapshotDir
	name string // of the entry in tree/; empty in tree/ and in .deep
	// at is the place in a stretch of literal nesting; it has no levels in tree/ and in .deep.
	at layout.Nesting
	up int // levels above the stretch's first directory, up to the session's directory
}

// entry returns the entry whose directory it is; NoEntry for tree/ and .deep.
func (d *TreeDir) entry(snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	if d.name == "" {
		return sessioncore.NoEntry, nil
	}
	return layout.FindTreeName(snap, d.name)
}

func (d *TreeDir) isTree() bool { return d.name == "" && d.up == 1 }

// below is the directory of an entry at a place of a stretch that begins so many levels below the session's directory.
func (d *TreeDir) below(name string, at layout.Nesting, up int) child {
	return child{mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		return &TreeDir{d.part(), name, at, up}
	}}
}

// find finds the directory of an entry, where a stretch ends a link to the next, or entry.json.
func (d *TreeDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	if d.isTree() && it.name == layout.Deep {
		return d.below("", layout.Nesting{}, d.up+1), nil
	}
	of, err := d.entry(snap)
	if err != nil {
		return child{}, err
	}
	toSession := strings.Repeat("../", d.at.Levels+d.up)
	if of != sessioncore.NoEntry && it.name == layout.EntryLink {
		to := target{toSession + layout.EntryPath(snap, of), snap.Stat(), snap.Time(of)}
		return d.fixedLink(d.session, to, out), nil
	}
	e, err := layout.FindTreeName(snap, it.name)
	if err != nil {
		return child{}, err
	}
	if of != sessioncore.NoEntry && snap.Tree().Parent(e) != of {
		return child{}, syscall.ENOENT
	}
	at, ok := d.at.Below(it.name)
	if !ok {
		to := target{toSession + layout.Tree + "/" + layout.Deep + "/" + it.name, snap.Stat(), snap.Time(e)}
		return d.fixedLink(d.session, to, out), nil
	}
	d.fillTreeDir(snap, e, out)
	return d.below(it.name, at, d.up), nil
}

// fillTreeDir sets the attributes of an entry's directory. It changes when a child is added, so its time is that of the
// last child.
func (n *node) fillTreeDir(snap *sessioncore.Snapshot, e sessioncore.Entry, out *fuse.Attr) {
	n.fillDir(out, snap.Stat())
	last := snap.Time(e)
	if kids := snap.Tree().Children(e); len(kids) > 0 {
		if t := snap.Time(kids[len(kids)-1]); t.After(last) {
			last = t
		}
	}
	fillTimes(out, last, last)
}

// fillAttr finds the entry for fillTreeDir.
func (d *TreeDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	if d.name == "" {
		return d.snapshotDir.fillAttr(ctx, out)
	}
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	e, err := d.entry(snap)
	if err == nil {
		d.fillTreeDir(snap, e, out)
	}
	return err
}

func (d *TreeDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	of, err := d.entry(snap)
	if err != nil {
		return nil, err
	}
	var entries []sessioncore.Entry
	var items []item
	switch {
	case of != sessioncore.NoEntry:
		entries = snap.Tree().Children(of)
		items = append(items, d.newItem(layout.EntryLink, syscall.S_IFLNK))
	case d.isTree():
		entries = snap.Tree().Roots()
		items = append(items, d.newItem(layout.Deep, syscall.S_IFDIR))
	default:
		entries = layout.Beginnings(snap)
	}
	for _, e := range entries {
		name := layout.TreeName(snap, e)
		if _, ok := d.at.Below(name); ok {
			items = append(items, d.newItem(name, syscall.S_IFDIR))
		} else {
			items = append(items, d.newItem(name, syscall.S_IFLNK))
		}
	}
	return items, nil
}
