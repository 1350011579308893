package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/report"
)

// BranchesDir is branches/: a link to the current branch and one to the branch of each tip, newest first. The
// branch to every other entry can be looked up too. All links lead into .by-id/, which is listed so that users
// can see where they lead.
type BranchesDir struct{ snapshotDir }

// find finds a fixed name, or the branch to any entry, by a link.
func (d *BranchesDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	switch it.name {
	case layout.BranchIDs:
		return child{mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
			return &BranchIDsDir{d.part()}
		}}, nil
	case layout.CurrentBranch:
		return d.link(nil, inSession(d.session, currentBranch)), nil
	}
	e, err := snap.FindBranch(it.name, layout.CurrentBranch)
	if err != nil {
		return child{}, err
	}
	to := target{layout.BranchIDs + "/" + snap.Name(e), snap.Stat(), snap.Time(e)}
	return d.fixedLink(d.session, to, out), nil
}

// currentBranch returns the target of branches/current, the branch that ends at the leaf.
func currentBranch(snap *sessioncore.Snapshot) (target string, t time.Time, err error) {
	leaf, err := layout.CurrentLeaf(snap)
	if err != nil {
		return "", t, err
	}
	return layout.BranchIDs + "/" + snap.Name(leaf), t, nil
}

func (d *BranchesDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	tips := report.Tips(snap)
	items := make([]item, 0, len(tips)+2)
	items = append(items, d.newItem(layout.BranchIDs, syscall.S_IFDIR))
	if leaf != sessioncore.NoEntry {
		items = append(items, d.newItem(layout.CurrentBranch, syscall.S_IFLNK))
	}
	for _, e := range tips {
		items = append(items, d.newItem(snap.Name(e, layout.CurrentBranch), syscall.S_IFLNK))
	}
	return items, nil
}

// BranchIDsDir is branches/.by-id/: the branch to every entry, by the name of the entry's file. It
// lists nothing: all branches together are far longer than the session (docs/design.md, Crawlers).
type BranchIDsDir struct{ snapshotDir }

// find finds the branch to any entry.
func (d *BranchIDsDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	e, err := snap.FindBranch(it.name)
	if err != nil {
		return child{}, err
	}
	d.fillBranchDir(snap, e, out)
	return child{mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		return &BranchDir{d.part(), branch(it.name)}
	}}, nil
}

// branch is the name in .by-id/ of a branch: that of its last entry's file in entries/, without the suffix.
type branch string

// end returns the last entry of the branch; further, of what readers of its files continue with, and whether that is beyond.
func (b branch) end(snap *sessioncore.Snapshot, further bool) (end sessioncore.Entry, beyond bool, err error) {
	e, err := snap.FindBranch(string(b))
	if end = e; err == nil && further {
		end = snap.BranchBelow(e)
	}
	return end, end != e, err
}

// grows reports whether handles of the branch's files that are opened in a snapshot continue.
func (b branch) grows(snap *sessioncore.Snapshot) bool {
	e, _, err := b.end(snap, false)
	return err == nil && snap.EndsBranch(e)
}

// BranchDir is branches/.by-id/<id>/: the branch that ends at an entry.
type BranchDir struct {
	snapshotDir
	branch branch
}

// branchFiles are the fixed names in a branch's directory.
var branchFiles = fixedNames[*BranchDir]{
	{"context.json", syscall.S_IFREG, func(d *BranchDir) fusefs.InodeEmbedder { return d.generated(d.view.contextAt) }, nil},
	{entriesName, syscall.S_IFREG, nil, nil}, // see find
	{layout.BranchPath, syscall.S_IFDIR, func(d *BranchDir) fusefs.InodeEmbedder {
		return &BranchPathDir{BranchDir{d.part(), d.branch}}
	}, nil},
	{"transcript.md", syscall.S_IFREG, makeBranchTranscript, nil},
}

// entriesName is the one file whose node stands for one content.
const entriesName = "entries.jsonl"

// generated returns the node of a generated file that is rendered at the entry where the branch ends.
func (d *BranchDir) generated(r renderAt) *GeneratedFile {
	f := &GeneratedFile{branch: d.branch, atEnd: r}
	f.init(d.view, d.session, nil)
	return f
}

// belowSession is how many directories branches/.by-id/<id>/ lies below a session's directory.
const belowSession = 3

// makeBranchTranscript makes branches/<id>/transcript.md: the branch that ends at that entry. Open handles
// continue as long as the session continues after the entry.
func makeBranchTranscript(d *BranchDir) fusefs.InodeEmbedder {
	f := d.generated(renderTranscript(&d.node, belowSession))
	f.grows = d.branch.grows
	return f
}

// fillBranchDir sets the attributes of a branch's directory. The content of a branch does not change, so its time
// is that of its last entry.
func (n *node) fillBranchDir(snap *sessioncore.Snapshot, e sessioncore.Entry, out *fuse.Attr) {
	n.fillDir(out, snap.Stat())
	t := snap.Time(e)
	fillTimes(out, t, t)
}

func (d *BranchDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	e, _, err := d.branch.end(snap, false)
	if err == nil {
		d.fillBranchDir(snap, e, out)
	}
	return err
}

func (d *BranchDir) find(ctx context.Context, snap *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	c, err := branchFiles.find(ctx, d, it)
	if err != nil {
		return child{}, err
	}
	e, _, err := d.branch.end(snap, false)
	if err == nil && it.name == entriesName {
		var state sessioncore.EntryState
		state, err = snap.Branch(e).EntriesState(ctx)
		c.content, c.make = state.Sum, func() fusefs.InodeEmbedder { return newEntriesFile(d, state) }
	}
	return c, err
}

func (d *BranchDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	return branchFiles.list(ctx, d, &d.node), nil
}

// pathToSession is the way from branches/.by-id/<id>/path/ up to the session's directory.
const pathToSession = "../../../../"

// BranchPathDir is branches/<id>/path/: a link to each entry of a branch, in order, whose name says what
// the entry is.
type BranchPathDir struct{ BranchDir }

// find finds an entry of the branch by the whole name: its number, what it is and the name of its file.
func (d *BranchPathDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	end, _, err := d.branch.end(snap, false)
	if err != nil {
		return child{}, err
	}
	e, err := layout.FindPathName(snap, snap.Branch(end), it.name)
	if err != nil {
		return child{}, err
	}
	to := target{pathToSession + layout.EntryPath(snap, e), snap.Stat(), snap.Time(e)}
	return d.fixedLink(d.session, to, out), nil
}

func (d *BranchPathDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	end, _, err := d.branch.end(snap, false)
	if err != nil {
		return nil, err
	}
	entries := snap.Branch(end).Entries()
	items := make([]item, len(entries))
	for place, e := range entries {
		items[place] = d.newItem(layout.PathName(snap, place, e), syscall.S_IFLNK)
	}
	return items, nil
}

// EntriesFile is branches/<id>/entries.jsonl: the entries of a branch as one flat file. Like an EntryFile,
// the node stands for one content, which does not change as long as the session only grows. So the
// kernel may keep its pages, and a reader can finish while the session is rewritten. If it is opened
// at the end of a branch, it continues with the entries that are added after that.
type EntriesFile struct {
	node
	line
	branch branch
	state  sessioncore.EntryState
}

func newEntriesFile(d *BranchDir, state sessioncore.EntryState) *EntriesFile {
	f := &EntriesFile{node: node{view: d.view}, branch: d.branch, state: state}
	f.session, f.show, f.grows, f.content = d.session, f.shown, d.branch.grows, state.Sum
	return f
}

// cache saves the kernel a question for the attributes before each read(2), which are two of three requests of a
// grep.
func (f *EntriesFile) cache() cacheRule { return cacheMoment }

func (f *EntriesFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	return f.stat(ctx, out, func(ctx context.Context, snap *sessioncore.Snapshot) error {
		e, err := f.find(ctx, snap)
		if err == nil {
			fillEntry(snap, e, f.state, out)
		}
		return err
	})
}

// find returns the last entry of the branch. The error is errReplaced if its content is no longer that of the node.
func (f *EntriesFile) find(ctx context.Context, snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	e, _, err := f.branch.end(snap, false)
	if err != nil {
		return e, err
	}
	state, err := snap.Branch(e).EntriesState(ctx)
	if err == nil && state != f.state {
		err = errReplaced
	}
	return e, err
}

// shown returns a version of the file.
func (f *EntriesFile) shown(ctx context.Context, snap *sessioncore.Snapshot, further bool) (s shown, err error) {
	if _, err := f.find(ctx, snap); err != nil {
		return s, err
	}
	end, beyond, err := f.branch.end(snap, further)
	if err != nil {
		return s, err
	}
	b := snap.Branch(end)
	if err := snap.Confirm(ctx, b.Entries()...); err != nil { // the kernel keeps pages
		return s, err
	}
	var state sessioncore.EntryState
	if s.version, state, err = b.EntriesDocument(ctx); err == nil {
		fillEntry(snap, end, state, &s.attr)
	}
	s.beyond = beyond
	return s, err
}

var _ = (fusefs.NodeOpener)((*EntriesFile)(nil))

// Open pins the session. It returns ESTALE if the branch is no longer what the kernel was told, or if open handles
// have continued beyond it: the kernel then looks up the path again and retries.
func (f *EntriesFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open")
	}
	joined, err := f.open(ctx)
	if err != nil {
		return nil, 0, f.fail("open", staleIfGone(err))
	}
	if !joined {
		return nil, 0, syscall.ESTALE
	}
	return &documentHandle{&f.node, &f.line, false}, forReading | fuse.FOPEN_KEEP_CACHE, 0
}
