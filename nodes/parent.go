package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/listing"
)

// makeParent makes parent, the link to the session that this one was forked from.
func makeParent(d *SessionDir) fusefs.InodeEmbedder {
	return &Link{node: node{view: d.view}, rule: &cacheAttr, find: d.parentTarget}
}

// parent finds the session that this one was forked from.
func (d *SessionDir) parent(ctx context.Context) (listing.Member, error) {
	return d.view.family().Parent(ctx, d.member())
}

// parentTarget finds where parent leads. The link has the owner and the times of its own session, whose header names the
// parent.
func (d *SessionDir) parentTarget(ctx context.Context) (target, error) {
	parent, err := d.parent(ctx)
	if err != nil {
		return target{}, err
	}
	st, err := d.session.Probe(ctx)
	if err != nil {
		return target{}, err
	}
	return target{path: layout.RelativeTarget(d.path(), parent.Path()), st: st}, nil
}

// hasParent reports whether the session that this one was forked from is in the mount. An error counts as no, so that
// the rest of the directory can be listed.
func (d *SessionDir) hasParent(ctx context.Context) Presence {
	_, err := d.parentTarget(ctx)
	return presentIf(err == nil)
}
