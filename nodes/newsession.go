package nodes

import (
	"context"
	"path"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// NewSessionFile is new-session: a working directory, or an object with cwd, title and parentSession,
// makes a session. Reading back gives the path of its directory from the mount's root (docs/design.md
// section 2).
type NewSessionFile struct {
	node
	sessions, source storage.Files
}

// NewNewSessionFile returns the file that makes sessions in sessions, a directory of source that may be missing.
func NewNewSessionFile(view *View, sessions, source storage.Files) *NewSessionFile {
	return &NewSessionFile{node: node{view: view}, sessions: sessions, source: source}
}

// fillAttr gives the file the mode of the directory in which it makes directories.
func (f *NewSessionFile) fillAttr(_ context.Context, out *fuse.Attr) error {
	st, err := f.sessions.Stat("")
	if storage.IsMissing(err) {
		st, err = f.source.Stat("")
	}
	if err != nil {
		return err
	}
	f.fillWritable(out, st, 0)
	return nil
}

var _ = (fusefs.NodeSetattrer)((*NewSessionFile)(nil))

// Setattr ignores what > and touch send.
func (f *NewSessionFile) Setattr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return f.ignoreSetattr(ctx, fh, in, out)
}

var _ = (fusefs.NodeOpener)((*NewSessionFile)(nil))

// Open returns a handle that accepts lines.
func (f *NewSessionFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return f.controlHandle(f, flags), fuse.FOPEN_DIRECT_IO, 0
}

func (f *NewSessionFile) apply(ctx context.Context, lines [][]byte) ([]string, int, error) {
	return oneByOne(lines, func(line string) (string, error) {
		spec, err := writer.ParseNewSession([]byte(line))
		if err != nil {
			return "", err
		}
		file, err := f.view.Writer.NewSession(ctx, spec)
		if err != nil {
			return "", err
		}
		return path.Join(layout.Sessions, layout.SessionDir(file)), nil
	})
}

// unfinished reports whether a line is the beginning of an object, which may continue in another write.
func (f *NewSessionFile) unfinished(line []byte) bool {
	return len(line) > 0 && line[0] == '{' && writer.Unfinished(line)
}

// sync puts all new sessions on disk that were written to; sessionfs -u does that before it unmounts.
func (f *NewSessionFile) sync(ctx context.Context) error { return f.view.Writer.SyncAll(ctx) }

func (f *NewSessionFile) refused(err error) syscall.Errno {
	return f.view.refuse(outside, NewSessionName, f.path(), err)
}

func (f *NewSessionFile) errno(err error) syscall.Errno { return errnoOf(err) }

func (f *NewSessionFile) accepted() { f.view.accepted(outside) }

// NewSessionName is the name of the file in the root of the mount, by which last-error calls it.
const NewSessionName = "new-session"
