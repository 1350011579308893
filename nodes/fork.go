package nodes

import (
	"context"
	"path"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/writer"
)

// makeFork makes fork: an id creates a session of the path to that entry.
func makeFork(d *SessionDir) fusefs.InodeEmbedder { return d.control("fork", forkLines, nil) }

// forkLines creates sessions. Reading the same open file gives the paths of their directories from the mount's root.
func forkLines(ctx context.Context, f *ControlFile, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		id, _, err := writer.ParseLabelLine(line + "\t") // so that a space is part of the id
		if err != nil {
			return "", err
		}
		file, err := f.view.Writer.Fork(ctx, f.session, id)
		if err != nil {
			return "", err
		}
		return path.Join(layout.Sessions, layout.SessionDir(file)), nil
	})
}
