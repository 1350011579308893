package nodes

import (
	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
)

// makeLabels makes labels; who reads it goes on with the labels that are set meanwhile.
func makeLabels(d *SessionDir) fusefs.InodeEmbedder {
	f := control("labels", labelLines, nil, renderLabels)(d).(*ControlFile)
	f.follow = &following{}
	return f
}

// renderLabels makes labels: the labels in effect.
func renderLabels(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.LabelsDocument(), nil
}
