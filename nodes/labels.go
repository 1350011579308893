package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/writer"
)

// makeLabels makes labels; its open handles continue with labels that are set later.
func makeLabels(d *SessionDir) fusefs.InodeEmbedder {
	f := d.control("labels", oneByOne(d.setLabel), atOnce(renderLabels))
	f.follow = &following{}
	return f
}

// setLabel sets or clears a label: "<id> <label>" sets, "<id>" clears.
func (d *SessionDir) setLabel(ctx context.Context, line string) (string, error) {
	id, label, err := writer.ParseLabelLine(line)
	if err != nil {
		return "", err
	}
	return "", d.view.Writer.SetLabel(ctx, d.session, id, label)
}

// renderLabels renders labels: the labels in effect.
func renderLabels(snap *sessioncore.Snapshot) (*document.Document, error) {
	return snap.LabelsDocument(), nil
}
