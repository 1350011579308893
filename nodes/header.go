package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// renderHeader renders header.json: the session's header as loaded.
func renderHeader(_ context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	return snap.HeaderDocument()
}
