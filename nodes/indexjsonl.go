package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore/budget"
)

// maxIndexListed is for how many sessions index.jsonl is listed. Whoever stats all that is in its directory, as ls -l and
// ls --color do, waits for its size, and that takes a look at every session: some 0.4 s for so many.
const maxIndexListed = 10_000

// IndexName is index.jsonl as a name in a directory.
func IndexName(view *View) Name {
	return Name{
		Name: "index.jsonl", Mode: syscall.S_IFREG,
		Make: func() fusefs.InodeEmbedder { return newIndexFile(view) },
		Listed: func(ctx context.Context) bool {
			many, err := view.Listing.Exceeds(ctx, maxIndexListed)
			return err != nil || !many // the error is for who looks at the file
		},
	}
}

// newIndexFile returns index.jsonl: one line for each session, newest first (docs/design.md section 5). The lines are
// rendered as they are read.
func newIndexFile(view *View) *ContentFile {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		sessions, err := view.Listing.Sessions(ctx)
		if err != nil {
			return content{}, err
		}
		return content{text: sessions.Index(), size: sessions.IndexSize(), stat: sessions.Stat(), private: true}, nil
	}
	return &ContentFile{node: node{view: view}, render: render}
}
