package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
)

// RootName is a name in the root directory of a mount.
type RootName struct {
	Name string
	Mode uint32 // file type bits
	Make func() fusefs.InodeEmbedder
}

// RootDir is the root of a mount: the directories of SOURCE that are shown, and what is generated from them.
type RootDir struct {
	directory
	source storage.Storage
	names  []RootName
}

// NewRootDir returns the root of a mount of source with those names, in order.
func NewRootDir(view *View, source storage.Storage, names ...RootName) *RootDir {
	view.crowd.init(maxNodes)
	return &RootDir{directory: directory{node{view: view}}, source: source, names: names}
}

func (d *RootDir) fillAttr(out *fuse.Attr) error {
	st, err := d.source.Stat("")
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	return nil
}

var _ = (fusefs.NodeLookuper)((*RootDir)(nil))

// Lookup finds one of the names.
func (d *RootDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	for i := range d.names {
		if d.names[i].Name == name {
			return d.enterName(ctx, &d.names[i], out)
		}
	}
	return nil, syscall.ENOENT
}

func (d *RootDir) enterName(ctx context.Context, n *RootName, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(d.StableAttr(), kindStatic, n.Name, n.Mode)
	return d.enter(d.child(ctx, id, n.Name, n.Make), out)
}

func (d *RootDir) list() ([]item, error) {
	items := make([]item, 0, len(d.names))
	for i, n := range d.names {
		it := d.newItem(kindStatic, n.Name, n.Mode)
		it.number = int32(i)
		items = append(items, it)
	}
	return items, nil
}

func (d *RootDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.enterName(ctx, &d.names[it.number], out)
}

// pathFollower is a directory in the root through which paths lead to sessions.
type pathFollower interface {
	// follow turns a path below the directory into one below sessions/. Its error is that of a look-up.
	follow(parts []string) (below []string, err error)
}

// follow resolves a path through one of the names to one below sessions/, or returns layout.ErrLeadsNowhere.
func (d *RootDir) follow(parts []string) (below []string, err error) {
	err = layout.ErrLeadsNowhere
	for i := range d.names {
		if d.names[i].Name != parts[0] {
			continue
		}
		if dir, ok := d.names[i].Make().(pathFollower); ok {
			below, err = dir.follow(parts[1:])
		}
	}
	if errnoOf(err) == syscall.ENOENT {
		err = layout.ErrLeadsNowhere
	}
	return below, err
}
