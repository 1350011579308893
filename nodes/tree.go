package nodes

import (
	"context"
	"strings"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

const (
	deepName      = ".deep"
	entryLinkName = "entry.json"
)

// TreeRoot is tree/ and tree/.deep/: directories that mirror parentId. tree/ lists the roots and .deep,
// which lists the places where the nesting goes on; in both every entry can be looked up (docs/design.md,
// tree/).
type TreeRoot struct {
	directory
	session *sessioncore.Session
	deep    bool // this is .deep
}

func makeTree(d *SessionDir) fusefs.InodeEmbedder {
	return &TreeRoot{directory: directory{node{view: d.view}}, session: d.session}
}

func (d *TreeRoot) fillAttr(out *fuse.Attr) error { return d.fillSessionDir(out, d.session) }

func (d *TreeRoot) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*TreeRoot)(nil))

// Getattr mirrors the session file.
func (d *TreeRoot) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*TreeRoot)(nil))

// Lookup finds the subtree under any entry.
func (d *TreeRoot) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if name == deepName && !d.deep {
		return d.enterDeep(ctx, out)
	}
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	return d.lookupName(ctx, snap, name, out)
}

func (d *TreeRoot) enterDeep(ctx context.Context, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindStatic, deepName, syscall.S_IFDIR)
	return d.enter(d.child(ctx, id, deepName, func() fusefs.InodeEmbedder {
		return &TreeRoot{directory: directory{node{view: d.view}}, session: d.session, deep: true}
	}), out)
}

func (d *TreeRoot) lookupName(ctx context.Context, snap *sessioncore.Snapshot, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e, err := snap.FindTreeName(name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	up := 1
	if d.deep {
		up = 2
	}
	place := treePlace{at: sessioncore.Begin(name), up: up}
	return enterTreeDir(ctx, &d.node, d.session, snap, e, name, place, out)
}

var _ = (fusefs.NodeOpendirHandler)((*TreeRoot)(nil))

// OpendirHandle opens the directory for listing.
func (d *TreeRoot) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openSessionListing(d)
}

func (d *TreeRoot) list() ([]item, func(), error) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	self := d.StableAttr()
	var items []item
	entries := snap.Beginnings()
	if !d.deep {
		entries = snap.Tree().Roots()
		id := stableAttr(self, kindStatic, deepName, syscall.S_IFDIR)
		items = append(items, item{name: deepName, mode: id.Mode, ino: id.Ino})
	}
	for _, e := range entries {
		id := stableAttr(self, kindTreeDir, snap.TreeName(e), syscall.S_IFDIR)
		items = append(items, item{name: snap.TreeName(e), mode: id.Mode, ino: id.Ino, number: int32(e)})
	}
	return items, nil, nil
}

func (d *TreeRoot) acquire() (*sessioncore.Snapshot, error) { return d.session.Acquire() }

func (d *TreeRoot) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if it.name == deepName && !d.deep {
		return d.enterDeep(ctx, out)
	}
	return d.lookupName(ctx, snap, it.name, out)
}

// treePlace is where a directory of tree/ lies: in its stretch of literal nesting, and how many levels
// below the session's directory its stretch begins.
type treePlace struct {
	at sessioncore.Nesting
	up int // levels above the stretch's first directory, up to the session's directory
}

// toSession returns the way from the directory up to the session's directory.
func (p treePlace) toSession() string { return strings.Repeat("../", p.at.Levels+p.up) }

// TreeDir is the directory of an entry in tree/: entry.json and a directory for each child.
type TreeDir struct {
	directory
	session *sessioncore.Session
	name    string // that tree/ has for the entry
	place   treePlace
}

func enterTreeDir(ctx context.Context, parent *node, session *sessioncore.Session, snap *sessioncore.Snapshot, e sessioncore.Entry, name string, place treePlace, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(parent.StableAttr(), kindTreeDir, name, syscall.S_IFDIR)
	child := parent.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &TreeDir{directory: directory{node{view: parent.view}}, session: session, name: name, place: place}
	})
	parent.fillTreeDir(snap, e, &out.Attr)
	setTimeouts(out, cacheSecond)
	return child, 0
}

// fillTreeDir: such a directory changes when a child comes, so its time is that of the last child.
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

// find acquires the session and finds the entry in it; the caller releases the snapshot.
func (d *TreeDir) find() (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, 0, err
	}
	e, err := snap.FindTreeName(d.name)
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

func (d *TreeDir) fillAttr(out *fuse.Attr) error {
	snap, e, err := d.find()
	if err != nil {
		return err
	}
	defer snap.Release()
	d.fillTreeDir(snap, e, out)
	return nil
}

func (d *TreeDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*TreeDir)(nil))

// Getattr tells the time of the last child.
func (d *TreeDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*TreeDir)(nil))

// Lookup finds entry.json or a child: a directory, or where a stretch ends a link to the next.
func (d *TreeDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	snap, e, err := d.find()
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	return d.lookupName(ctx, snap, e, name, out)
}

func (d *TreeDir) lookupName(ctx context.Context, snap *sessioncore.Snapshot, e sessioncore.Entry, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if name == entryLinkName {
		return d.enterLink(ctx, name, d.place.toSession()+"entries/"+snap.Name(e)+entrySuffix, snap.Stat(), snap.Time(e), out)
	}
	kid, err := snap.FindTreeName(name)
	if err != nil || snap.Tree().Parent(kid) != e {
		return nil, syscall.ENOENT
	}
	below, ok := d.place.at.Below(name)
	if !ok {
		return d.enterLink(ctx, name, d.place.toSession()+"tree/"+deepName+"/"+name, snap.Stat(), snap.Time(kid), out)
	}
	return enterTreeDir(ctx, &d.node, d.session, snap, kid, name, treePlace{at: below, up: d.place.up}, out)
}

func (d *TreeDir) enterLink(ctx context.Context, name, target string, st storage.Stat, t time.Time, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindTreeLink, name, syscall.S_IFLNK)
	return d.enterFixedLink(ctx, d.session, id, name, target, st, t, out)
}

var _ = (fusefs.NodeOpendirHandler)((*TreeDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *TreeDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openSessionListing(d)
}

func (d *TreeDir) list() ([]item, func(), error) {
	snap, e, err := d.find()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	self := d.StableAttr()
	kids := snap.Tree().Children(e)
	items := make([]item, 0, len(kids)+1)
	add := func(name string, k kind, mode uint32) {
		id := stableAttr(self, k, name, mode)
		items = append(items, item{name: name, mode: mode, ino: id.Ino})
	}
	add(entryLinkName, kindTreeLink, syscall.S_IFLNK)
	for _, kid := range kids {
		name := snap.TreeName(kid)
		if _, ok := d.place.at.Below(name); ok {
			add(name, kindTreeDir, syscall.S_IFDIR)
		} else {
			add(name, kindTreeLink, syscall.S_IFLNK)
		}
	}
	return items, nil, nil
}

func (d *TreeDir) acquire() (*sessioncore.Snapshot, error) { return d.session.Acquire() }

func (d *TreeDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e, err := snap.FindTreeName(d.name)
	if err != nil {
		return nil, syscall.ENOENT
	}
	return d.lookupName(ctx, snap, e, it.name, out)
}
