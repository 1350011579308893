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
func makeTranscript(d *SessionDir) fusefs.InodeEmbedder {
	return generated(atLeaf(renderTranscript(&d.node, 0)), &following{})(d)
}

// belowSession is how many directories branches/.by-id/<id>/ lies below a session's directory.
const belowSession = 3

// makeBranchTranscript makes branches/<id>/transcript.md: the branch that ends at that entry. Open handles
// continue as long as the session continues after the entry.
func makeBranchTranscript(d *BranchDir) fusefs.InodeEmbedder {
	name, render := d.name, renderTranscript(&d.node, belowSession)
	f := d.generated(render)
	f.follow = &following{
		further: func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, bool, error) {
			e, err := snap.FindBranch(name)
			if err != nil {
				return nil, false, err
			}
			end := snap.BranchBelow(e)
			doc, err := render(ctx, snap, end)
			return doc, end != e, err
		},
		goesOn: func(snap *sessioncore.Snapshot) bool {
			e, err := snap.FindBranch(name)
			return err == nil && snap.EndsBranch(e)
		},
	}
	return f
}

// renderTranscript renders a transcript whose directory is that many levels below a session's directory: its links begin
// there.
func renderTranscript(dir *node, below int) renderAt {
	up := func(levels int) string { return strings.Repeat("../", levels) }
	depth := strings.Count(dir.path(), "/") + 1
	links := transcript.Links{Entries: up(below) + "entries/", Blobs: up(depth) + "blobs/"}
	return func(ctx context.Context, snap *sessioncore.Snapshot, end sessioncore.Entry) (*document.Document, error) {
		return transcript.Render(ctx, snap, end, links)
	}
}
