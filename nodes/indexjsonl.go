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

// maxIndexListed is for how many sessions index.jsonl is listed. Whoever stats all that is in its directory, as ls -l and
// ls --color do, waits for its size, and that takes a look at every session: some 0.4 s for so many.
const maxIndexListed = 10_000

// IndexName is index.jsonl as a name in a directory.
func IndexName(view *View) Name {
	return Name{
		Name: "index.jsonl", Mode: syscall.S_IFREG,
		Make: func() fusefs.InodeEmbedder { return &IndexFile{node{view: view}} },
		Listed: func(ctx context.Context) bool {
			many, err := view.Listing.Exceeds(ctx, maxIndexListed)
			return err != nil || !many // the error is for who looks at the file
		},
	}
}

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
	sessions, err := f.view.Listing.Look(ctx)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	return &contentHandle{node: &f.node, content: sessions.Index()}, forReading | fuse.FOPEN_DIRECT_IO, 0
}
