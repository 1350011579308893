package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/sent"
)

// contextAt makes the context at an entry.
func (v *View) contextAt(ctx context.Context, snap *sessioncore.Snapshot, e sessioncore.Entry) (*document.Document, error) {
	if v.ContextSent {
		return sent.Context(ctx, snap, e, v.contextBlobs())
	}
	return snap.Context(ctx, e, v.contextBlobs())
}

// makeContext makes context.json: what the model would be sent from the leaf.
func makeContext(d *SessionDir) fusefs.InodeEmbedder {
	return generated(atLeaf(d.view.contextAt), nil)(d)
}

// branchContext makes the context.json of a branch.
func branchContext(d *BranchDir) fusefs.InodeEmbedder { return d.generated(d.view.contextAt) }
