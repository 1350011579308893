package nodes

import (
	"context"
	"path"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// NewSessionName is the name of the file in the root of the mount, by which last-error calls it.
const NewSessionName = "new-session"

// NewNewSessionFile returns new-session: a working directory, or an object with cwd, title and parentSession, makes a
// session in sessions, a directory of source that may be missing. Reading back gives the path of its directory from the
// mount's root (docs/design.md section 2). The file has the mode of the directory in which it makes directories.
func NewNewSessionFile(view *View, sessions, source storage.Files) *ControlFile {
	return &ControlFile{
		GeneratedFile: GeneratedFile{node: node{view: view}},
		of:            outside, name: NewSessionName,
		stat: func(context.Context) (storage.Stat, error) {
			st, err := sessions.Stat("")
			if storage.IsMissing(err) {
				st, err = source.Stat("")
			}
			return st, err
		},
		do: oneByOne(view.newSession),
		// The beginning of an object may continue in another write.
		part: func(line []byte) bool { return len(line) > 0 && line[0] == '{' && writer.Unfinished(line) },
		// All new sessions that were written to; sessionfs -u does that before it unmounts.
		makeDurable: view.Writer.SyncAll,
	}
}

func (v *View) newSession(ctx context.Context, line string) (string, error) {
	spec, err := writer.ParseNewSession([]byte(line))
	if err != nil {
		return "", err
	}
	file, err := v.Writer.NewSession(ctx, spec)
	if err != nil {
		return "", err
	}
	return path.Join(layout.Sessions, layout.SessionDir(file)), nil
}
