package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// renderBranches makes branches.tsv: a row for each tip.
func renderBranches(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	return snap.BranchesDocument(ctx)
}
