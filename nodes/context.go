package nodes

import (
	"context"

	"sessionfs/sessioncore"
)

// renderContext makes context.json: what the model would be sent from the leaf.
func renderContext(ctx context.Context, v *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	return snap.Context(ctx, leaf, v.contextBlobs())
}
