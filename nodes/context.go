package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/sent"
)

// contextAt makes the context at an entry.
func contextAt(ctx context.Context, v *View, snap *sessioncore.Snapshot, e sessioncore.Entry) (*document.Document, error) {
	if v.ContextSent {
		return sent.Context(ctx, snap, e, v.contextBlobs())
	}
	return snap.Context(ctx, e, v.contextBlobs())
}

// renderContext makes context.json: what the model would be sent from the leaf.
func renderContext(ctx context.Context, v *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	return contextAt(ctx, v, snap, leaf)
}
