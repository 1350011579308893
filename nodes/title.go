package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// makeTitle makes title, the one control file in which an empty line has a meaning, to clear the title, and which accepts
// one line only.
func makeTitle(d *snapshotDir) fusefs.InodeEmbedder {
	f := control("title", titleLines, nil, renderTitle)(d).(*ControlFile)
	f.empty, f.single = true, true
	return f
}

// renderTitle renders title: the session's title and a newline, or nothing if it has none.
func renderTitle(_ context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, error) {
	return snap.TitleDocument()
}

// titleLines sets the title to a line; an empty line clears it.
func titleLines(ctx context.Context, f *ControlFile, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		return "", f.view.Writer.SetTitle(ctx, f.session, line)
	})
}
