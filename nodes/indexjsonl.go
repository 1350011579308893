package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// IndexFile is index.jsonl: one line for each session, newest first (docs/design.md section 5). As with other
// generated files, all reads of one handle see one version.
type IndexFile struct{ node }

// NewIndexFile returns index.jsonl.
func NewIndexFile(view *View) *IndexFile { return &IndexFile{node{view: view}} }

func (f *IndexFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	sessions, err := f.view.Listing.Look(ctx)
	if err != nil {
		return err
	}
	f.fillPrivate(out, sessions.Stat(), syscall.S_IFREG, sessions.IndexSize())
	return nil
}

var _ = (fusefs.NodeOpener)((*IndexFile)(nil))

// Open lists all sessions; their lines are rendered as they are read.
func (f *IndexFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open", f.path())
	}
	if err := f.view.Access.ownerOnly(ctx); err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	sessions, err := f.view.Listing.Look(ctx)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	return &contentHandle{node: &f.node, content: sessions.Index()}, forReading | fuse.FOPEN_DIRECT_IO, 0
}
