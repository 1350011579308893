package nodes

import (
	"context"

	"sessionfs/sessioncore"
)

// renderBranches makes branches.tsv: a row for each tip.
func renderBranches(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.BranchesDocument(ctx)
}
