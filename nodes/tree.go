package nodes

import (
	"context"
	"strings"
	"syscall"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

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

func (d *TreeDir) isTree() bool { return !d.ofEntry && d.up == 1 }

// child returns the directory of an entry in d, at a place of a stretch.
func (d *TreeDir) child(name string, at layout.Nesting) Child {
	return Child{Kind: storage.KindDir, Make: func() Node { return &TreeDir{d.part(name), at, d.up, true} }}
}

// Find finds the directory of an entry, a link to it where a stretch ends, or entry.json.
func (d *TreeDir) Find(_ context.Context, snap *sessioncore.Snapshot, it Item) (Child, error) {
	if d.isTree() && it.Name == layout.Deep {
		return Child{Kind: storage.KindDir, Make: func() Node {
			return &TreeDir{snapshotDir: d.part(layout.Deep), up: d.up + 1}
		}}, nil
	}
	of, err := d.entry(snap)
	if err != nil {
		return Child{}, err
	}
	toSession := strings.Repeat("../", int(d.at.Levels+d.up))
	if of != sessioncore.NoEntry && it.Name == layout.EntryLink {
		to := target{toSession + layout.EntryPath(snap, of), snap.Stat(), snap.Time(of)}
		return d.steadyLink(d.session, to), nil
	}
	e, err := layout.FindTreeName(snap, it.Name)
	if err != nil {
		return Child{}, err
	}
	if of != sessioncore.NoEntry && snap.Tree().Parent(e) != of {
		return Child{}, syscall.ENOENT
	}
	at, ok := d.at.Below(it.Name)
	if !ok {
		to := target{toSession + layout.Tree + "/" + layout.Deep + "/" + it.Name, snap.Stat(), snap.Time(e)}
		return d.steadyLink(d.session, to), nil
	}
	c := d.child(it.Name, at)
	c.Attr = d.view.treeAttr(snap, e)
	return c, nil
}

// treeAttr returns the attributes of an entry's directory. Its time is that of the last child, as
// it changes when a child is added.
func (v *View) treeAttr(snap *sessioncore.Snapshot, e sessioncore.Entry) Attr {
	last := snap.Time(e)
	if kids := snap.Tree().Children(e); len(kids) > 0 {
		if t := snap.Time(kids[len(kids)-1]); t.After(last) {
			last = t
		}
	}
	return v.dirAttr(snap.Stat()).at(last, last)
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

func (d *TreeDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	of, err := d.entry(snap)
	if err != nil {
		return nil, err
	}
	var entries []sessioncore.Entry
	var items []Item
	switch {
	case of != sessioncore.NoEntry:
		entries = snap.Tree().Children(of)
		items = append(items, Item{Name: layout.EntryLink, Kind: storage.KindLink})
	case d.isTree():
		entries = snap.Tree().Roots()
		items = append(items, Item{Name: layout.Deep, Kind: storage.KindDir})
	default:
		entries = layout.StretchStarts(snap)
	}
	for _, e := range entries {
		name := layout.TreeName(snap, e)
		if _, ok := d.at.Below(name); ok {
			items = append(items, Item{Name: name, Kind: storage.KindDir})
		} else {
			items = append(items, Item{Name: name, Kind: storage.KindLink})
		}
	}
	return items, nil
}
