package nodes

import (
	"context"
	"slices"
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

// branchFile is a fixed name in a branch's directory.
type branchFile struct {
	name string
	mode uint32 // file type bits
	make makeBranchFile
}

// makeBranchFile returns the node of a fixed name for a branch that ends at an entry. If the node stands for
// one content only, the number identifies the content; else it is 0.
type makeBranchFile func(context.Context, *BranchDir, *sessioncore.Snapshot, sessioncore.Entry) (n fusefs.InodeEmbedder, content uint64, err error)

// branchFiles are the fixed names, in order: the one list that drives Lookup and listing.
var branchFiles = []branchFile{
	{"context.json", syscall.S_IFREG, branchGenerated(contextAt)},
	{"entries.jsonl", syscall.S_IFREG, makeBranchEntries},
	{layout.BranchPath, syscall.S_IFDIR, makeBranchPath},
	{"transcript.md", syscall.S_IFREG, makeBranchTranscript},
}

// renderBranch renders a generated file from a snapshot, at the entry where a branch ends.
type renderBranch func(context.Context, *View, *sessioncore.Snapshot, sessioncore.Entry) (*document.Document, error)

func branchGenerated(r renderBranch) makeBranchFile {
	return func(_ context.Context, d *BranchDir, _ *sessioncore.Snapshot, _ sessioncore.Entry) (fusefs.InodeEmbedder, uint64, error) {
		render := func(ctx context.Context, v *View, snap *sessioncore.Snapshot) (*document.Document, error) {
			e, err := snap.FindBranch(d.name)
			if err != nil {
				return nil, err
			}
			return r(ctx, v, snap, e)
		}
		return &GeneratedFile{node: node{view: d.view}, session: d.session, render: render}, 0, nil
	}
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

func (n *node) fillBranch(ctx context.Context, session *sessioncore.Session, name string, out *fuse.Attr) error {
	snap, e, err := findBranch(ctx, session, name)
	if err != nil {
		return err
	}
	defer snap.Release()
	n.fillBranchDir(snap, e, out)
	return nil
}

func (d *BranchDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	return d.fillBranch(ctx, d.session, d.name, out)
}

var _ = (fusefs.NodeLookuper)((*BranchDir)(nil))

// Lookup finds a fixed name.
func (d *BranchDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	i := slices.IndexFunc(branchFiles, func(f branchFile) bool { return f.name == name })
	if i < 0 {
		return nil, syscall.ENOENT
	}
	snap, e, err := findBranch(ctx, d.session, d.name)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	f := branchFiles[i]
	made, content, err := f.make(ctx, d, snap, e)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	id := stableAttr(d.StableAttr(), kindStatic, name, f.mode)
	return d.enter(ctx, d.named(ctx, id, name, content, func() fusefs.InodeEmbedder { return made }), out)
}

func (d *BranchDir) list(_ context.Context) ([]item, error) {
	items := make([]item, len(branchFiles))
	for i, f := range branchFiles {
		items[i] = d.newItem(kindStatic, f.name, f.mode)
	}
	return items, nil
}

func (d *BranchDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if slowFiles[it.name] {
		return nil, syscall.ENOENT // as in SessionDir
	}
	return d.Lookup(ctx, it.name, out)
}
