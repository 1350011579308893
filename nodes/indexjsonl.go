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

// IndexName is index.jsonl as a name in a directory: one line for each session, newest first (docs/design.md section 5).
// The lines are rendered as they are read.
var IndexName = Name{
	Name: "index.jsonl", Mode: syscall.S_IFREG, Make: newIndexFile,
	Is: func(view *View, ctx context.Context) Presence {
		if many, err := view.Listing.Exceeds(ctx, maxIndexListed); err == nil && many {
			return Hidden
		}
		return Listed // an error is for who looks at the file
	},
}

func newIndexFile(view *View) fusefs.InodeEmbedder {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		sessions, err := view.Listing.Sessions(ctx)
		if err != nil {
			return content{}, err
		}
		return content{text: sessions.Index(), size: sessions.IndexSize(), stat: sessions.Stat(), private: true}, nil
	}
	return &ContentFile{node: node{view: view}, render: render}
}
