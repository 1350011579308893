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
	f := d.control("labels", labelLines, atOnce(renderLabels))
	f.follow = &following{}
	return f
}

// labelLines sets and clears labels: "<id> <label>" sets, "<id>" clears.
func labelLines(ctx context.Context, f *ControlFile, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		id, label, err := writer.ParseLabelLine(line)
		if err != nil {
			return "", err
		}
		return "", f.view.Writer.SetLabel(ctx, f.session, id, label)
	})
}

// renderLabels renders labels: the labels in effect.
func renderLabels(snap *sessioncore.Snapshot) (*document.Document, error) {
	return snap.LabelsDocument(), nil
}
