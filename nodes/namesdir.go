package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Name is a fixed name in a directory.
type Name struct {
	Name string
	Mode uint32 // file type bits
	Make func() fusefs.InodeEmbedder
	// Listed reports whether the name is listed, and not only found: what is there may be so much work that no crawler may
	// start it. nil means yes.
	Listed func(context.Context) bool
}

// Never is the Listed of a name that is only found.
func Never(context.Context) bool { return false }

// isListed reports whether the name is in a listing.
func (n Name) isListed(ctx context.Context) bool { return n.Listed == nil || n.Listed(ctx) }

// enterName answers a lookup with a fixed name.
func (n *node) enterName(ctx context.Context, of Name, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	id := stableAttr(n.StableAttr(), kindStatic, of.Name, of.Mode)
	return n.enter(ctx, n.child(ctx, id, of.Name, of.Make), out)
}

// namesDir is the base of the directories outside of the sessions that have fixed names.
type namesDir struct {
	directory
	names []Name // in order: the one list that drives Lookup and listing
}

func newNamesDir(view *View, names []Name) namesDir {
	return namesDir{directory{node{view: view}}, names}
}

var _ = (fusefs.NodeLookuper)((*namesDir)(nil))

// Lookup finds one of the names.
func (d *namesDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	for _, n := range d.names {
		if n.Name == name {
			return d.enterName(ctx, n, out)
		}
	}
	return nil, syscall.ENOENT
}

func (d *namesDir) list(ctx context.Context) ([]item, error) {
	items := make([]item, 0, len(d.names))
	for _, n := range d.names {
		if n.isListed(ctx) {
			items = append(items, d.newItem(kindStatic, n.Name, n.Mode))
		}
	}
	return items, nil
}

func (d *namesDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if slowFiles[it.name] {
		return nil, syscall.ENOENT // the kernel then looks it up itself
	}
	return d.Lookup(ctx, it.name, out)
}
