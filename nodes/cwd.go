package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/names"
)

// makeCWD makes cwd. It accepts one line: what follows would be written to a session that is no longer there.
func makeCWD(d *SessionDir) fusefs.InodeEmbedder {
	f := d.control("cwd", oneByOne(d.setCWD), atOnce(renderCWD))
	f.single, f.makeDurable = true, nil // it is, and may be at another place by now
	return f
}

// renderCWD renders cwd: the working directory in the header and a newline, or nothing if there is none.
func renderCWD(snap *sessioncore.Snapshot) (*document.Document, error) {
	header, _, err := snap.ReadHeader()
	if err != nil {
		return nil, err
	}
	cwd, _ := header.Member("cwd").Text()
	line := names.TitleLine(cwd)
	if len(line) > 0 {
		line = append(line, '\n')
	}
	return document.OfText(snap, line), nil
}

// setCWD moves the session to a working directory.
func (d *SessionDir) setCWD(ctx context.Context, line string) (string, error) {
	return "", d.view.Writer.SetCWD(ctx, d.session, line)
}
