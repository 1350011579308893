package nodes

import "sessionfs/sessioncore"

// renderProblems makes problems.jsonl: what could not be read or joined, nothing where all is well.
func renderProblems(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.ProblemsDocument(), nil
}
