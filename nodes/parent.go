package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/listing"
)

const parentName = "parent"

// makeParent makes parent, the link to the session that this one was forked from.
func makeParent(d *snapshotDir) fusefs.InodeEmbedder {
	return &SessionLink{Link{node: node{view: d.view}, find: func(ctx context.Context) (target, error) { return findParent(ctx, d) }}}
}

// findParentSession finds the parent of the session that d shows.
func findParentSession(ctx context.Context, d *snapshotDir) (listing.Member, error) {
	return d.view.family().Parent(ctx, d.member())
}

// findParent finds where parent leads. The link has the owner and the times of its own session, whose header names the
// parent.
func findParent(ctx context.Context, d *snapshotDir) (target, error) {
	parent, err := findParentSession(ctx, d)
	if err != nil {
		return target{}, err
	}
	st, err := d.session.Probe(ctx)
	if err != nil {
		return target{}, err
	}
	return target{path: layout.RelativeTarget(d.path(), parent.Path()), st: st}, nil
}
