package nodes

import (
	"context"

	"sessionfs/sessioncore"
)

// renderTitle makes title: the session's title and a newline, nothing where it has none.
func renderTitle(_ *View, snap *sessioncore.Snapshot) (*sessioncore.Document, error) {
	return snap.TitleDocument()
}

// titleLines is title as it is written to: a line sets the title, an empty one clears it.
func titleLines(ctx context.Context, f *ControlFile, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		return "", f.view.Writer.SetTitle(ctx, f.session, line)
	})
}
