package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/report"
)

// renderBranches makes branches.tsv: a row for each tip.
func renderBranches(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	return report.Branches(ctx, snap)
}
