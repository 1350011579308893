package nodes

import (
	"context"
	"strings"
	"syscall"
	"time"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// EntriesDir is entries/: a file for each entry, listed in file order.
type EntriesDir struct{ snapshotDir }

// Find finds the file of an entry. It uses the entry number of a listed item if that entry still has the name.
func (d *EntriesDir) Find(_ context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	name, hasSuffix := strings.CutSuffix(it.Name, layout.EntrySuffix)
	if !hasSuffix {
		return Child{}, syscall.ENOENT
	}
	e := sessioncore.Entry(it.number)
	isThere := it.number != unnumbered && int(e) < snap.Len()
	if !isThere || snap.Name(e) != name {
		var err error
		e, err = snap.FindName(name)
		if err != nil {
			return Child{}, err
		}
	}
	state, err := snap.EntryState(e)
	if err != nil {
		return Child{}, err
	}
	content := uint64(state.Size)<<32 ^ state.Sum // another size is another content, also with the same sum
	return Child{
		Kind:    storage.KindFile,
		Content: content,
		Attr:    entryAttr(snap, e, state),
		Make: func() Node {
			return &EntryFile{
				node:    d.file(),
				session: d.session,
				name:    name,
				state:   state,
			}
		},
	}, nil
}

// List lists the entries, each with its number for Find.
func (d *EntriesDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	items := make([]Item, snap.Len())
	for e := range items {
		name := snap.Name(sessioncore.Entry(e)) + layout.EntrySuffix
		items[e] = Item{Name: name, Kind: storage.KindFile, number: int32(e)}
	}
	return items, nil
}

// EntryFile is entries/<id>.json: an entry as persisted, and a newline. The node holds the name and
// no content. It stands for one state of the entry: if a rewrite of the session changes the entry,
// a lookup finds another node of the same name. So a door may keep its content, and a reader can
// finish with the old one.
type EntryFile struct {
	node
	session *sessioncore.Session
	name    string // in entries/, without its suffix
	state   sessioncore.EntryState
}

// find acquires the session and finds the entry in it. The error is errReplaced if the entry is no
// longer in the node's state. Callers must release the snapshot.
func (f *EntryFile) find(ctx context.Context) (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := f.session.Acquire(ctx)
	if err != nil {
		return nil, 0, err
	}
	e, err := f.findIn(snap)
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

// findIn finds the entry in a snapshot, for find.
func (f *EntryFile) findIn(snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	e, err := snap.FindName(f.name)
	if err != nil {
		return 0, err
	}
	state, err := snap.EntryState(e)
	if err == nil && state != f.state {
		err = errReplaced
	}
	return e, err
}

// Stat returns the attributes of the entry, or errReplaced if it is no longer in the node's state.
func (f *EntryFile) Stat(ctx context.Context) (Attr, error) {
	snap, e, err := f.find(ctx)
	if err != nil {
		return Attr{}, err
	}
	defer snap.Release()
	return entryAttr(snap, e, f.state), nil
}

// entryAttr returns the attributes of a file that shows an entry, or a branch that ends at it. The
// change time is the entry's time with a part below a millisecond from the content, so that backup
// programs notice a rewrite of the same size.
func entryAttr(snap *sessioncore.Snapshot, e sessioncore.Entry, state sessioncore.EntryState) Attr {
	const nanosecondsOfMillisecond = 1e6
	modified := snap.Time(e)
	ofContent := time.Duration(state.Sum % nanosecondsOfMillisecond)
	a := fileAttr(snap.Stat(), state.Size)
	return a.withTimes(modified, modified.Add(ofContent))
}

func (f *EntryFile) Stability() Stability { return Fixed }

// Open pins the entry. It returns errReplaced if the entry is no longer in the node's state: the
// door then looks the path up once more and retries, so that a cached size never truncates a read.
func (f *EntryFile) Open(ctx context.Context, _ int) (Handle, error) {
	snap, e, err := f.find(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	doc, err := snap.EntryDocument(e)
	if err != nil {
		return nil, err
	}
	return &EntryHandle{file: f, attr: entryAttr(snap, e, f.state), doc: doc}, nil
}

// EntryHandle is an open entry.
type EntryHandle struct {
	file *EntryFile
	attr Attr // at the open
	doc  *document.Document
}

// Stat returns the attributes of the file, or of the handle's version after a rewrite.
func (h *EntryHandle) Stat(ctx context.Context) (Attr, error) {
	a, err := h.file.Stat(ctx)
	if err != nil {
		a = h.attr
	}
	return a, nil
}

// Size returns the size of the entry.
func (h *EntryHandle) Size() int64 { return h.doc.Size() }

func (h *EntryHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.doc.ReadAt(p, off)
}

func (h *EntryHandle) Close() { h.doc.Close() }

// TreeDir is tree/, tree/.deep/ or the directory of an entry below one of them: directories that
// mirror parentId. tree/ lists the roots and .deep, which lists the entries at which the nesting
// continues; both find every entry (docs/design.md, tree/). The directory of an entry has
// entry.json and a directory for each child.
type TreeDir struct {
	snapshotDir
	// at is the place in a stretch of literal nesting; it has no levels in tree/ and in .deep.
	at      layout.Nesting
	up      int32 // levels above the stretch's first directory, up to the session's directory
	ofEntry bool  // it is the directory of the entry of its name; false for tree/ and .deep
}

// entry returns the entry of the directory; NoEntry for tree/ and .deep.
func (d *TreeDir) entry(snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	if !d.ofEntry {
		return sessioncore.NoEntry, nil
	}
	return layout.FindTreeName(snap, d.name)
}

// isTree reports whether the directory is tree/.
func (d *TreeDir) isTree() bool { return !d.ofEntry && d.up == 1 }

// Find finds the directory of an entry, a link to it where a stretch ends, or entry.json. In the directory of an
// entry it finds only that entry's children, in tree/ and in .deep every entry.
func (d *TreeDir) Find(_ context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	if d.isTree() && it.Name == layout.Deep {
		deep := func() Node {
			return &TreeDir{snapshotDir: d.part(layout.Deep), up: d.up + 1}
		}
		return Child{Kind: storage.KindDir, Make: deep}, nil
	}
	parent, err := d.entry(snap)
	if err != nil {
		return Child{}, err
	}
	levels := int(d.at.Levels + d.up)
	toSession := strings.Repeat("../", levels)
	if parent != sessioncore.NoEntry && it.Name == layout.EntryLink {
		to := targetOfEntry(snap, parent, toSession+layout.EntryPath(snap, parent))
		return d.steadyLink(d.session, to), nil
	}
	e, err := layout.FindTreeName(snap, it.Name)
	if err != nil {
		return Child{}, err
	}
	if parent != sessioncore.NoEntry && snap.Tree().Parent(e) != parent {
		return Child{}, syscall.ENOENT
	}
	at, isWithin := d.at.Below(it.Name)
	if !isWithin {
		deep := toSession + layout.Tree + "/" + layout.Deep + "/" + it.Name
		return d.steadyLink(d.session, targetOfEntry(snap, e, deep)), nil
	}
	return Child{
		Kind: storage.KindDir,
		Attr: d.view.treeAttr(snap, e),
		Make: func() Node {
			return &TreeDir{
				snapshotDir: d.part(it.Name),
				at:          at,
				up:          d.up,
				ofEntry:     true,
			}
		},
	}, nil
}

// treeAttr returns the attributes of an entry's directory. Its time is the time of the last child, as
// it changes when a child is added.
func (v *View) treeAttr(snap *sessioncore.Snapshot, e sessioncore.Entry) Attr {
	last := snap.Time(e)
	children := snap.Tree().Children(e)
	if len(children) > 0 {
		ofLastChild := snap.Time(children[len(children)-1])
		if ofLastChild.After(last) { // not where a clock was set back
			last = ofLastChild
		}
	}
	return v.dirAttr(snap.Stat()).withTimes(last, last)
}

// Stat finds the entry for treeAttr.
func (d *TreeDir) Stat(ctx context.Context) (Attr, error) {
	if !d.ofEntry {
		return d.snapshotDir.Stat(ctx)
	}
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return Attr{}, err
	}
	defer snap.Release()
	e, err := d.entry(snap)
	if err != nil {
		return Attr{}, err
	}
	return d.view.treeAttr(snap, e), nil
}

// List lists the directories of the children or roots; where the stretch ends, links to them.
func (d *TreeDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	parent, err := d.entry(snap)
	if err != nil {
		return nil, err
	}
	var entries []sessioncore.Entry
	var items []Item
	switch {
	case parent != sessioncore.NoEntry:
		entries = snap.Tree().Children(parent)
		items = append(items, Item{Name: layout.EntryLink, Kind: storage.KindLink})
	case d.isTree():
		entries = snap.Tree().Roots()
		items = append(items, Item{Name: layout.Deep, Kind: storage.KindDir})
	default:
		entries = layout.StretchStarts(snap)
	}
	for _, e := range entries {
		it := Item{Name: layout.TreeName(snap, e), Kind: storage.KindDir}
		_, isWithin := d.at.Below(it.Name)
		if !isWithin {
			it.Kind = storage.KindLink
		}
		items = append(items, it)
	}
	return items, nil
}
