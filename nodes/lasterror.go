package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/storage"
)

// LastErrorFile is last-error: why the last write to the session was refused, in words, with its time, and what to do
// instead; in the mount's root, why the last write or look-up was that concerns no session. It is empty again after the
// next one that succeeds.
type LastErrorFile struct {
	node
	of   string // the session's name, or outside
	stat func(context.Context) (storage.Stat, error)
}

func makeLastError(d *snapshotDir) fusefs.InodeEmbedder {
	return &LastErrorFile{node: node{view: d.view}, of: d.session.Name(), stat: d.session.Probe}
}

// NewLastErrorFile returns last-error of the root of a mount of source.
func NewLastErrorFile(view *View, source storage.Storage) *LastErrorFile {
	return &LastErrorFile{node: node{view: view}, of: outside, stat: func(context.Context) (storage.Stat, error) { return source.Stat("") }}
}

func (f *LastErrorFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := f.stat(ctx)
	if err != nil {
		return err
	}
	last, ok := f.view.refusals.get(f.of)
	if f.of == outside {
		f.fillPrivate(out, st, syscall.S_IFREG, int64(len(last.line())))
	} else {
		fillFile(out, st, int64(len(last.line())))
	}
	if ok {
		fillTimes(out, last.at, last.at)
	}
	return nil
}

var _ = (fusefs.NodeOpener)((*LastErrorFile)(nil))

// Open returns a handle with the current reason.
func (f *LastErrorFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open", f.path())
	}
	last, _ := f.view.refusals.get(f.of)
	return &contentHandle{node: &f.node, content: strings.NewReader(last.line())}, fuse.FOPEN_DIRECT_IO, 0
}
