package nodes

import "sessionfs/sessioncore"

// renderLabels makes labels: the labels in effect.
func renderLabels(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.LabelsDocument(), nil
}
