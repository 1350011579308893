package nodes

import (
	"context"
	"strings"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/transcript"
)

// makeTranscript makes transcript.md: the current branch as Markdown for people.
func makeTranscript(d *snapshotDir) fusefs.InodeEmbedder {
	links := transcriptLinks(&d.node, 0)
	return generated(func(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, error) {
		leaf, err := snap.Leaf()
		if err != nil {
			return nil, err
		}
		return transcript.Render(ctx, snap, leaf, links)
	}, &following{})(d)
}

// belowSession is how many directories branches/.by-id/<id>/ lies below a session's directory.
const belowSession = 3

// makeBranchTranscript makes branches/<id>/transcript.md: the branch that ends at that entry. Open handles
// continue as long as the session continues after the entry.
func makeBranchTranscript(ctx context.Context, d *BranchDir, snap *sessioncore.Snapshot, e sessioncore.Entry) (fusefs.InodeEmbedder, uint64, error) {
	links := transcriptLinks(&d.node, belowSession)
	made, _, err := branchGenerated(func(ctx context.Context, _ *View, snap *sessioncore.Snapshot, e sessioncore.Entry) (*document.Document, error) {
		return transcript.Render(ctx, snap, e, links)
	})(ctx, d, snap, e)
	name := d.name
	made.(*GeneratedFile).follow = &following{
		further: func(ctx context.Context, _ *View, snap *sessioncore.Snapshot) (*document.Document, bool, error) {
			e, err := snap.FindBranch(name)
			if err != nil {
				return nil, false, err
			}
			end := snap.BranchBelow(e)
			doc, err := transcript.Render(ctx, snap, end, links)
			return doc, end != e, err
		},
		goesOn: func(snap *sessioncore.Snapshot) bool {
			e, err := snap.FindBranch(name)
			return err == nil && snap.EndsBranch(e)
		},
	}
	return made, 0, err
}

// transcriptLinks returns the prefixes of the links in a transcript whose directory is that many levels below a
// session's directory.
func transcriptLinks(dir *node, below int) transcript.Links {
	up := func(levels int) string { return strings.Repeat("../", levels) }
	depth := strings.Count(dir.path(), "/") + 1
	return transcript.Links{Entries: up(below) + "entries/", Blobs: up(depth) + "blobs/"}
}
