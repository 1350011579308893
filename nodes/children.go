package nodes

import (
	"context"
	"errors"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// ChildrenDir is children/ in the directory of a session: links to the sessions whose parent it is. What it lists is
// looked for when it is listed; its own attributes are those of the session's directory.
type ChildrenDir struct{ snapshotDir }

func makeChildren(d *snapshotDir) fusefs.InodeEmbedder {
	return &ChildrenDir{newSnapshotDir(d.view, d.session)}
}

var _ = (fusefs.NodeLookuper)((*ChildrenDir)(nil))

// Lookup finds the link to a child.
func (d *ChildrenDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	to, err := d.find(ctx, name)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	fillLink(&out.Attr, to)
	setTimeouts(out, cacheAttr)
	id := stableAttr(d.StableAttr(), kindSessionLink, name, syscall.S_IFLNK)
	return d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &SessionLink{Link{node: node{view: d.view}, find: func(ctx context.Context) (target, error) { return d.find(ctx, name) }}}
	}), 0
}

// find finds where the link to a child leads. It has the owner and the times of the child.
func (d *ChildrenDir) find(ctx context.Context, name string) (target, error) {
	child, err := d.view.family().Child(ctx, d.member(), name)
	if err != nil {
		return target{}, err
	}
	st, err := child.Session.Probe(ctx)
	return target{path: layout.RelativeTarget(d.path(), child.Path()), st: st}, err
}

func (d *ChildrenDir) list(ctx context.Context) ([]item, error) {
	children, err := d.view.family().Children(ctx, d.member())
	if errors.Is(err, sessioncore.ErrNotFound) {
		err = nil
	}
	items := make([]item, 0, len(children))
	for _, child := range children {
		items = append(items, d.newItem(kindSessionLink, child.Name, syscall.S_IFLNK))
	}
	return items, err
}

// lookupItem leaves out the attributes in READDIRPLUS, as LinksDir does.
func (d *ChildrenDir) lookupItem(context.Context, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.ENOENT
}
