package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
)

// makeTitle makes title, the one control file in which an empty line has a meaning, to clear the title, and which accepts
// one line only.
func makeTitle(d *SessionDir) fusefs.InodeEmbedder {
	f := d.control("title", titleLines, atOnce((*sessioncore.Snapshot).TitleDocument))
	f.empty, f.single = true, true
	return f
}

// titleLines sets the title to a line; an empty line clears it.
func titleLines(ctx context.Context, f *ControlFile, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		return "", f.view.Writer.SetTitle(ctx, f.session, line)
	})
}
