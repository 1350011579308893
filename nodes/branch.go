package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// BranchDir is branches/.by-id/<id>/: the branch that ends at an entry.
type BranchDir struct {
	snapshotDir
	name string // of the entry's file in entries/, without its suffix
}

// branchFiles are the fixed names in a branch's directory.
var branchFiles = fixedNames[*BranchDir]{
	{"context.json", syscall.S_IFREG, branchContext, nil},
	{entriesName, syscall.S_IFREG, nil, nil}, // see find
	{layout.BranchPath, syscall.S_IFDIR, makeBranchPath, nil},
	{"transcript.md", syscall.S_IFREG, makeBranchTranscript, nil},
}

// entriesName is the one file whose node stands for one content.
const entriesName = "entries.jsonl"

// generated returns the node of a generated file that is rendered at the entry where the branch ends.
func (d *BranchDir) generated(r renderAt) *GeneratedFile {
	name := d.name
	render := func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		e, err := snap.FindBranch(name)
		if err != nil {
			return nil, err
		}
		return r(ctx, snap, e)
	}
	return &GeneratedFile{node: node{view: d.view}, session: d.session, render: render}
}

// findBranch acquires a session and finds the branch with a name in .by-id/. Callers must release the snapshot.
func findBranch(ctx context.Context, session *sessioncore.Session, name string) (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := session.Acquire(ctx)
	if err != nil {
		return nil, 0, err
	}
	e, err := snap.FindBranch(name)
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

// fillBranchDir sets the attributes of a branch's directory. The content of a branch does not change, so its time
// is that of its last entry.
func (n *node) fillBranchDir(snap *sessioncore.Snapshot, e sessioncore.Entry, out *fuse.Attr) {
	n.fillDir(out, snap.Stat())
	t := snap.Time(e)
	fillTimes(out, t, t)
}

func (d *BranchDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	snap, e, err := findBranch(ctx, d.session, d.name)
	if err != nil {
		return err
	}
	defer snap.Release()
	d.fillBranchDir(snap, e, out)
	return nil
}

func (d *BranchDir) find(ctx context.Context, snap *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	c, err := branchFiles.find(ctx, d, it)
	if err != nil {
		return child{}, err
	}
	e, err := snap.FindBranch(d.name)
	if err == nil && it.name == entriesName {
		var state sessioncore.BranchState
		state, err = snap.Branch(e).EntriesState(ctx)
		c.content, c.make = state.Sum, func() fusefs.InodeEmbedder {
			return &EntriesFile{node: node{view: d.view}, session: d.session, name: d.name, state: state}
		}
	}
	return c, err
}

func (d *BranchDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	return branchFiles.list(ctx, d, &d.node), nil
}
