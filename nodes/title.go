package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
)

// makeTitle makes title, the one control file for which an empty line means something, it clears, and that takes one
// line alone.
func makeTitle(d *SessionDir) fusefs.InodeEmbedder {
	f := control("title", titleLines, nil, renderTitle)(d).(*ControlFile)
	f.empty, f.single = true, true
	return f
}

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
