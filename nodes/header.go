package nodes

import (
	"context"

	"sessionfs/sessioncore"
)

// renderHeader renders header.json: the session's header as loaded.
func renderHeader(_ context.Context, _ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.HeaderDocument()
}
