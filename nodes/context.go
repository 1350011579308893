package nodes

import "sessionfs/sessioncore"

// renderContext makes context.json: what the model would be sent from the leaf.
func renderContext(v *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	return snap.Context(leaf, v.contextBlobs())
}
