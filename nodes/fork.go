package nodes

import (
	"context"
	"path"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/writer"
)

// makeFork makes fork: an id creates a session of the path to that entry.
func makeFork(d *SessionDir) fusefs.InodeEmbedder { return d.control("fork", oneByOne(d.fork), nil) }

// fork creates a session. Reading the same open file gives the path of its directory from the mount's root.
func (d *SessionDir) fork(ctx context.Context, line string) (string, error) {
	id, _, err := writer.ParseLabelLine(line + "\t") // so that a space is part of the id
	if err != nil {
		return "", err
	}
	file, err := d.view.Writer.Fork(ctx, d.session, id)
	if err != nil {
		return "", err
	}
	return path.Join(layout.Sessions, layout.SessionDir(file)), nil
}
