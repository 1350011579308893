package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/report"
)

// renderUsage makes usage.json: what the session and its current branch cost in tokens and money.
func renderUsage(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	return report.Usage(ctx, snap, leaf)
}
