package nodes

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// renderProblems renders problems.jsonl: what could not be read or joined or is missing. It is empty if there are no
// problems.
func renderProblems(ctx context.Context, v *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	return snap.ProblemsDocument(ctx, v.Blobs), nil
}
