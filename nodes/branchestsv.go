package nodes

import "sessionfs/sessioncore"

// renderBranches makes branches.tsv: a row for each tip.
func renderBranches(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.BranchesDocument()
}
