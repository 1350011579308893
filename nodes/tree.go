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

// TreeRoot is tree/ and tree/.deep/: directories that mirror parentId. tree/ lists the roots and .deep,
// which lists the entries at which the nesting continues; in both every entry can be looked up (docs/design.md,
// tree/).
type TreeRoot struct {
	snapshotDir
	deep bool // this is .deep
}

func makeTree(d *snapshotDir) fusefs.InodeEmbedder {
	return &TreeRoot{snapshotDir: newSnapshotDir(d.view, d.session)}
}

var _ = (fusefs.NodeLookuper)((*TreeRoot)(nil))

// Lookup finds the subtree under any entry.
func (d *TreeRoot) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if name == layout.Deep && !d.deep {
		return d.enterDeep(ctx, out)
	}
	return d.snapshotDir.Lookup(ctx, name, out)
}

func (d *TreeRoot) enterDeep(ctx context.Context, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindStatic, layout.Deep, syscall.S_IFDIR)
	return d.enter(ctx, d.child(ctx, id, layout.Deep, func() fusefs.InodeEmbedder {
		return &TreeRoot{snapshotDir: newSnapshotDir(d.view, d.session), deep: true}
	}), out)
}

func (d *TreeRoot) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if it.name == layout.Deep && !d.deep {
		return d.enterDeep(ctx, out)
	}
	e, err := layout.FindTreeName(snap, it.name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	up := 1
	if d.deep {
		up = 2
	}
	place := treePlace{at: layout.Begin(it.name), up: up}
	return enterTreeDir(ctx, &d.node, d.session, snap, e, it.name, place, out)
}

func (d *TreeRoot) listIn(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	var items []item
	entries := layout.Beginnings(snap)
	if !d.deep {
		entries = snap.Tree().Roots()
		items = append(items, d.newItem(kindStatic, layout.Deep, syscall.S_IFDIR))
	}
	for _, e := range entries {
		items = append(items, d.newItem(kindTreeDir, layout.TreeName(snap, e), syscall.S_IFDIR))
	}
	return items, nil
}

// treePlace is the position of a directory of tree/: its place in its stretch of literal nesting, and how many levels
// below the session's directory the stretch begins.
type treePlace struct {
	at layout.Nesting
	up int // levels above the stretch's first directory, up to the session's directory
}

// toSession returns the relative path from the directory up to the session's directory.
func (p treePlace) toSession() string { return strings.Repeat("../", p.at.Levels+p.up) }

// TreeDir is the directory of an entry in tree/: entry.json and a directory for each child.
type TreeDir struct {
	snapshotDir
	name  string // of the entry in tree/
	place treePlace
}

func enterTreeDir(ctx context.Context, parent *node, session *sessioncore.Session, snap *sessioncore.Snapshot, e sessioncore.Entry, name string, place treePlace, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(parent.StableAttr(), kindTreeDir, name, syscall.S_IFDIR)
	child := parent.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &TreeDir{snapshotDir: newSnapshotDir(parent.view, session), name: name, place: place}
	})
	parent.fillTreeDir(snap, e, &out.Attr)
	parent.setTimeoutsOf(child, out)
	return child, 0
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
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	e, err := layout.FindTreeName(snap, d.name)
	if err == nil {
		d.fillTreeDir(snap, e, out)
	}
	return err
}

// lookupIn finds entry.json or a child: a directory, or where a stretch ends a link to the next.
func (d *TreeDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e, err := layout.FindTreeName(snap, d.name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	name := it.name
	if name == layout.EntryLink {
		to := target{d.place.toSession() + layout.EntryPath(snap, e), snap.Stat(), snap.Time(e)}
		return d.enterLink(ctx, name, to, out)
	}
	kid, err := layout.FindTreeName(snap, name)
	if err != nil || snap.Tree().Parent(kid) != e {
		return nil, syscall.ENOENT
	}
	below, ok := d.place.at.Below(name)
	if !ok {
		to := target{d.place.toSession() + layout.Tree + "/" + layout.Deep + "/" + name, snap.Stat(), snap.Time(kid)}
		return d.enterLink(ctx, name, to, out)
	}
	return enterTreeDir(ctx, &d.node, d.session, snap, kid, name, treePlace{at: below, up: d.place.up}, out)
}

func (d *TreeDir) enterLink(ctx context.Context, name string, to target, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindTreeLink, name, syscall.S_IFLNK)
	return d.enterFixedLink(ctx, d.session, id, name, to, out)
}

func (d *TreeDir) listIn(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	e, err := layout.FindTreeName(snap, d.name)
	if err != nil {
		return nil, err
	}
	kids := snap.Tree().Children(e)
	items := make([]item, 0, len(kids)+1)
	items = append(items, d.newItem(kindTreeLink, layout.EntryLink, syscall.S_IFLNK))
	for _, kid := range kids {
		name := layout.TreeName(snap, kid)
		if _, ok := d.place.at.Below(name); ok {
			items = append(items, d.newItem(kindTreeDir, name, syscall.S_IFDIR))
		} else {
			items = append(items, d.newItem(kindTreeLink, name, syscall.S_IFLNK))
		}
	}
	return items, nil
}
