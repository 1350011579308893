package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
)

// makeTitle makes title, the one control file in which an empty line has a meaning, to clear the title, and which accepts
// one line only.
func makeTitle(d *SessionDir) fusefs.InodeEmbedder {
	f := d.control("title", oneByOne(d.setTitle), atOnce((*sessioncore.Snapshot).TitleDocument))
	f.empty, f.single = true, true
	return f
}

// setTitle sets the title to a line; an empty line clears it.
func (d *SessionDir) setTitle(ctx context.Context, line string) (string, error) {
	return "", d.view.Writer.SetTitle(ctx, d.session, line)
}
