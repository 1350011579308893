package nodes

import "sessionfs/sessioncore"

// renderProblems makes problems.jsonl: what could not be read or joined or is missing, nothing where all is well.
func renderProblems(v *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	if v.Blobs == nil {
		return snap.ProblemsDocument(nil), nil
	}
	return snap.ProblemsDocument(v.Blobs), nil
}
