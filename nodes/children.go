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
type ChildrenDir struct{ aboutSessions }

func makeChildren(d *SessionDir) fusefs.InodeEmbedder {
	return &ChildrenDir{newAboutSessions(d.view, d.session)}
}

// find finds the link to a child.
func (d *ChildrenDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	find := func(ctx context.Context) (target, error) { return d.target(ctx, it.name) }
	to, err := find(ctx)
	fillLink(out, to)
	return d.link(kindSessionLink, &cacheAttr, find), err
}

// target finds where the link to a child leads. It has the owner and the times of the child.
func (d *ChildrenDir) target(ctx context.Context, name string) (target, error) {
	child, err := d.view.family().Child(ctx, d.member(), name)
	if err != nil {
		return target{}, err
	}
	st, err := child.Session.Probe(ctx)
	return target{path: layout.RelativeTarget(d.path(), child.Path()), st: st}, err
}

func (d *ChildrenDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	children, err := d.view.family().Children(ctx, d.member())
	if errors.Is(err, sessioncore.ErrNotFound) {
		err = nil
	}
	items := make([]item, 0, len(children))
	for _, child := range children {
		it := d.newItem(kindSessionLink, child.Name, syscall.S_IFLNK)
		it.bare = true // as in LinksDir
		items = append(items, it)
	}
	return items, err
}
