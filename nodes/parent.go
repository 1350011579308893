package nodes

import (
	"context"
	"strings"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/access"
)

const parentName = "parent"

// makeParent makes parent, the link to the session that this one was forked from.
func makeParent(d *snapshotDir) fusefs.InodeEmbedder {
	return &SessionLink{Link{node: node{view: d.view}, find: func(ctx context.Context) (target, error) { return findParent(ctx, d) }}}
}

// findParentSession finds the parent of the session that d shows. Anybody can write a header: only who may read the
// parent is told where it is.
func findParentSession(ctx context.Context, d *snapshotDir) (*sessioncore.Session, error) {
	parent, err := d.view.Listing.Parent(ctx, d.session)
	if err != nil {
		return nil, err
	}
	return parent, d.view.maySession(ctx, parent.Name(), access.Read)
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
	from := strings.TrimPrefix(d.path(), layout.Sessions+"/")
	return target{path: layout.RelativeTarget(from, layout.SessionDir(parent.Name())), st: st}, nil
}
