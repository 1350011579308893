package nodes

import (
	"context"

	"sessionfs/sessioncore"
)

// renderUsage makes usage.json: what the session and its current branch cost in tokens and money.
func renderUsage(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	return snap.UsageDocument(ctx, leaf)
}
