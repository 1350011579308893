package nodes

import "sessionfs/sessioncore"

// renderProblems renders problems.jsonl: what could not be read or joined or is missing. It is empty if there are no
// problems.
func renderProblems(v *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.ProblemsDocument(v.Blobs), nil
}
