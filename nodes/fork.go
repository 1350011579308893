package nodes

import (
	"context"
	"path"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// forkLines is fork: an id creates a session of the path to that entry. Reading back gives the path of
// its directory from the mount's root.
func forkLines(ctx context.Context, f *ControlFile, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		id, _, err := sessioncore.ParseLabelLine(line + "\t") // a blank is part of the id
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
