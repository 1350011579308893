package nodes

import (
	"context"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// BranchesDir is branches/: a link to the current branch and one to the branch of each tip, newest
// first. The branch of any other entry can be looked up. All links lead into .by-id/, which is
// listed so that users can see the targets.
type BranchesDir struct{ snapshotDir }

// Find finds a fixed name, or the link to the branch of any entry.
func (d *BranchesDir) Find(_ context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	switch it.Name {
	case layout.BranchIDs:
		makeNode := func() Node {
			return &BranchIDsDir{d.part(it.Name)}
		}
		return Child{Kind: storage.KindDir, Make: makeNode}, nil
	case layout.CurrentBranch:
		return d.link(inSession(d.session, currentBranch), Changing), nil
	}
	e, err := snap.FindBranch(it.Name, layout.CurrentBranch)
	if err != nil {
		return Child{}, err
	}
	to := targetOfEntry(snap, e, layout.BranchIDs+"/"+snap.Name(e))
	return d.steadyLink(d.session, to), nil
}

// currentBranch returns the target of branches/current, the branch that ends at the leaf.
func currentBranch(snap *sessioncore.Snapshot) (target, error) {
	leaf, err := layout.CurrentLeaf(snap)
	if err != nil {
		return target{}, err
	}
	return target{path: layout.BranchIDs + "/" + snap.Name(leaf), st: snap.Stat()}, nil
}

// List lists .by-id, the link current, and a link for each tip.
func (d *BranchesDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return nil, err
	}
	tips := report.Tips(snap)
	items := make([]Item, 0, len(tips)+2)
	items = append(items, Item{Name: layout.BranchIDs, Kind: storage.KindDir})
	if leaf != sessioncore.NoEntry {
		items = append(items, Item{Name: layout.CurrentBranch, Kind: storage.KindLink})
	}
	for _, e := range tips {
		items = append(items, Item{Name: snap.Name(e, layout.CurrentBranch), Kind: storage.KindLink})
	}
	return items, nil
}

// BranchIDsDir is branches/.by-id/: the branch to every entry, by the name of the entry's file. It
// lists nothing: all branches together are far longer than the session (docs/design.md, Crawlers).
type BranchIDsDir struct{ snapshotDir }

// Find finds the branch to any entry.
func (d *BranchIDsDir) Find(_ context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	e, err := snap.FindBranch(it.Name)
	if err != nil {
		return Child{}, err
	}
	return Child{
		Kind: storage.KindDir,
		Attr: d.view.branchAttr(snap, e),
		Make: func() Node {
			return &BranchDir{branchDir{snapshotDir: d.part(it.Name), branch: branch(it.Name)}}
		},
	}, nil
}

// branch is a branch's name in .by-id/: the name of its last entry's file, without the suffix.
type branch string

// end returns the last entry of the branch. With extended it returns the entry that readers of its
// files continue to, and isLonger reports whether that is another one.
func (b branch) end(snap *sessioncore.Snapshot, extended bool) (end sessioncore.Entry, isLonger bool, err error) {
	e, err := snap.FindBranch(string(b))
	end = e
	if err == nil && extended {
		end = snap.BranchBelow(e)
	}
	return end, end != e, err
}

// grows reports whether handles of the branch's files that are opened in a snapshot continue.
func (b branch) grows(snap *sessioncore.Snapshot) bool {
	e, _, err := b.end(snap, false)
	return err == nil && snap.EndsBranch(e)
}

// branchDir is the base of directories of a branch.
type branchDir struct {
	snapshotDir
	branch branch
}

// Stat returns the attributes of the branch's directory; see branchAttr.
func (d *branchDir) Stat(ctx context.Context) (Attr, error) {
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return Attr{}, err
	}
	defer snap.Release()
	e, _, err := d.branch.end(snap, false)
	if err != nil {
		return Attr{}, err
	}
	return d.view.branchAttr(snap, e), nil
}

// BranchDir is branches/.by-id/<id>/: the branch that ends at an entry.
type BranchDir struct{ branchDir }

// branchFiles are the fixed names in a branch's directory.
var branchFiles = fixedNames[*BranchDir]{
	{
		Name: "context.json",
		Kind: storage.KindFile,
		Make: func(d *BranchDir) Node {
			return d.generated(d.view.contextAt)
		},
	},
	{Name: entriesName, Kind: storage.KindFile}, // BranchDir.Find makes its node
	{
		Name: layout.BranchPath,
		Kind: storage.KindDir,
		Make: func(d *BranchDir) Node {
			return &BranchPathDir{branchDir{snapshotDir: d.part(layout.BranchPath), branch: d.branch}}
		},
	},
	{
		Name: "transcript.md",
		Kind: storage.KindFile,
		Make: func(d *BranchDir) Node {
			f := d.generated(renderTranscript(&d.Directory, belowSession))
			f.grows = d.branch.grows // open handles continue while the session continues after the branch's entry
			return f
		},
	},
}

// entriesName is the only file with a node that stands for one content.
const entriesName = "entries.jsonl"

// generated returns the node of a generated file that is rendered at the end of the branch.
func (d *BranchDir) generated(r renderAt) *GeneratedFile {
	f := &GeneratedFile{}
	f.init(&d.Directory, nil)
	f.render = func(ctx context.Context, snap *sessioncore.Snapshot, extended bool) (s rendering, err error) {
		end, isLonger, err := d.branch.end(snap, extended)
		if err != nil {
			return s, err
		}
		version, err := r(ctx, snap, end)
		return rendering{version: version, isLonger: isLonger}, err
	}
	return f
}

// belowSession is how many directories branches/.by-id/<id>/ is below a session's directory.
const belowSession = 3

// branchAttr returns the attributes of a branch's directory. Its content does not change, so its
// time is the time of its last entry.
func (v *View) branchAttr(snap *sessioncore.Snapshot, e sessioncore.Entry) Attr {
	t := snap.Time(e)
	return v.dirAttr(snap.Stat()).withTimes(t, t)
}

// Find finds a fixed name. The node of entries.jsonl stands for its content.
func (d *BranchDir) Find(ctx context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	c, err := branchFiles.find(ctx, d, it)
	if err != nil {
		return Child{}, err
	}
	end, _, err := d.branch.end(snap, false)
	if err != nil || it.Name != entriesName {
		return c, err
	}
	state, err := snap.Branch(end).EntriesState(ctx)
	c.Content = state.Sum
	c.Make = func() Node {
		return newEntriesFile(d, state)
	}
	return c, err
}

func (d *BranchDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	return branchFiles.list(ctx, d), nil
}

// pathToSession leads from branches/.by-id/<id>/path/ up to the session's directory.
const pathToSession = "../../../../"

// BranchPathDir is branches/<id>/path/: a link to each entry of a branch, with a telling name.
type BranchPathDir struct{ branchDir }

// Find finds an entry of the branch by its full name: number, path label and file name.
func (d *BranchPathDir) Find(_ context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	end, _, err := d.branch.end(snap, false)
	if err != nil {
		return Child{}, err
	}
	e, err := layout.FindPathName(snap, snap.Branch(end), it.Name)
	if err != nil {
		return Child{}, err
	}
	to := targetOfEntry(snap, e, pathToSession+layout.EntryPath(snap, e))
	return d.steadyLink(d.session, to), nil
}

// List lists a link for each entry of the branch, in its order.
func (d *BranchPathDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	end, _, err := d.branch.end(snap, false)
	if err != nil {
		return nil, err
	}
	entries := snap.Branch(end).Entries()
	items := make([]Item, len(entries))
	for place, e := range entries {
		items[place] = Item{Name: layout.PathName(snap, place, e), Kind: storage.KindLink}
	}
	return items, nil
}

// EntriesFile is branches/<id>/entries.jsonl: the entries of a branch as one flat file. Like an
// EntryFile, the node stands for one content, which does not change while the session only grows.
// So a door may keep it, and a reader can finish while the session is rewritten. If it is opened at
// the end of a branch, it continues with entries that are added.
type EntriesFile struct {
	node
	sharedVersion
	branch branch
	state  sessioncore.EntryState
}

// newEntriesFile returns the node for one state of the entries of a branch.
func newEntriesFile(d *BranchDir, state sessioncore.EntryState) *EntriesFile {
	f := &EntriesFile{node: d.file(), branch: d.branch, state: state}
	f.session = d.session
	f.show = f.render
	f.grows = f.branch.grows
	f.content = state.Sum
	return f
}

func (f *EntriesFile) Stability() Stability { return Growing }

// Stat returns the attributes of the open handles' version, or of the branch.
func (f *EntriesFile) Stat(ctx context.Context) (Attr, error) {
	return f.stat(ctx, func(ctx context.Context, snap *sessioncore.Snapshot) (Attr, error) {
		e, err := f.find(ctx, snap)
		if err != nil {
			return Attr{}, err
		}
		return entryAttr(snap, e, f.state), nil
	})
}

// find returns the last entry of the branch, or errReplaced if the content of the branch is no longer the
// node's.
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

// render makes the version of the file in a snapshot, or with extended the one that its readers continue to. The
// error is errReplaced if the branch no longer has the node's content.
func (f *EntriesFile) render(ctx context.Context, snap *sessioncore.Snapshot, extended bool) (s rendering, err error) {
	_, err = f.find(ctx, snap)
	if err != nil {
		return s, err
	}
	end, isLonger, err := f.branch.end(snap, extended)
	if err != nil {
		return s, err
	}
	b := snap.Branch(end)
	err = snap.Confirm(ctx, b.Entries()...) // doors keep the content, so it must be the file's
	if err != nil {
		return s, err
	}
	version, state, err := b.EntriesDocument(ctx)
	if err != nil {
		return s, err
	}
	return rendering{
		version:  version,
		attr:     entryAttr(snap, end, state),
		isLonger: isLonger,
	}, nil
}

// Open pins the session. It returns errReplaced if the branch no longer has the node's content, or
// if open handles have continued beyond it: the door then looks the path up once more and retries.
func (f *EntriesFile) Open(ctx context.Context, _ int) (Handle, error) {
	joined, err := f.open(ctx)
	if err == nil && !joined {
		err = errReplaced
	}
	if err != nil {
		return nil, err
	}
	return &documentHandle{shared: &f.sharedVersion}, nil
}
