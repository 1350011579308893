package nodes

import (
	"context"
	"errors"
	"slices"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// Directory is the base of all directories: the place of a directory in the mount.
type Directory struct {
	*subject
	in   *Directory // nil for the root
	name string
}

// subject is shared by the directories of the same sessions.
type subject struct {
	view    *View
	session *sessioncore.Session // the session that the directories show; nil for all sessions and other files
}

// NewDirectory returns the base of a root.
func NewDirectory(view *View) Directory { return Directory{subject: &subject{view: view}} }

// below returns the base of a directory in d.
func (d *Directory) below(name string) Directory {
	return Directory{subject: d.subject, in: d, name: name}
}

// inView returns d as a directory of another view, for the same session.
func (d Directory) inView(view *View) Directory {
	if view != d.view {
		d.subject = &subject{view: view, session: d.session}
	}
	return d
}

// file returns the base of a file or a link in d.
func (d *Directory) file() node { return node{d} }

func (d *Directory) Base() *Directory { return d }

// View returns the part of the mount that the directory is in.
func (d *Directory) View() *View { return d.view }

func (d *Directory) Stability() Stability { return Fixed }

// Acquire returns no snapshot, for directories that need none.
func (d *Directory) Acquire(context.Context) (*sessioncore.Snapshot, error) { return nil, nil }

// List lists nothing: names can only be looked up.
func (d *Directory) List(context.Context, *sessioncore.Snapshot) ([]Item, error) { return nil, nil }

// Noted returns "", for directories without records of failed lookups.
func (d *Directory) Noted() string { return "" }

// sessionName returns the name of the session that the directory is about, outside if there is none.
func (d *Directory) sessionName() string {
	if d.session == nil {
		return outside
	}
	return d.session.Name()
}

// path returns the path of the directory in the mount, "" for the root.
func (d *Directory) path() string {
	if d.in == nil {
		return ""
	}
	return d.in.pathOf(d.name)
}

// pathOf returns the path of a node in the directory.
func (d *Directory) pathOf(name string) string {
	dir := d.path()
	if dir != "" {
		return dir + "/" + name
	}
	return name
}

// DirState is a state of a directory. A door finds names in it. It is not for concurrent use.
type DirState struct {
	dir  Dir
	snap *sessioncore.Snapshot // nil if the names are not found in a snapshot
}

// NewDirState returns the current state of a directory. The caller must close it.
func NewDirState(ctx context.Context, dir Dir) (DirState, error) {
	snap, err := dir.Acquire(ctx)
	return DirState{dir: dir, snap: snap}, err
}

// Close ends the use of the state. A second call does nothing.
func (s *DirState) Close() {
	if s.snap != nil {
		s.snap.Release()
	}
	*s = DirState{}
}

// Find finds the child of a name. Its attributes may be unknown: Attr returns them. A failure is recorded as
// by NoName. ESTALE means that the session has changed since NewDirState, so the name may be there now.
func (s *DirState) Find(ctx context.Context, it Item) (Child, syscall.Errno) {
	c, err := s.dir.Find(ctx, s.snap, it)
	isMissing := errors.Is(err, sessioncore.ErrNotFound)
	if isMissing && s.snap != nil {
		changed := s.snap.ConfirmAll(ctx)
		if changed != nil {
			err = changed // after ErrStale the caller looks the name up once more
		}
	}
	if err != nil {
		return Child{}, NoName(s.dir, it.Name, err)
	}
	return c, 0
}

// Attr returns the attributes of a found child, and ends the lookup of its name: last-error no longer has a
// failed one in this directory. n is the child's node.
func (s *DirState) Attr(ctx context.Context, name string, c *Child, n Node) (a Attr, errno syscall.Errno) {
	a = c.Attr
	if a.Kind == storage.KindOther {
		var err error
		a, err = n.Stat(ctx)
		if err != nil {
			return a, NoName(s.dir, name, err)
		}
	}
	noted := s.dir.Noted()
	if noted != "" {
		s.dir.Base().view.clearLookup(noted)
	}
	return a, 0
}

// OpenDir returns the errno of opening a directory for listing: ESTALE if it is gone, so that a
// door that keeps directories looks the path up once more.
func OpenDir(ctx context.Context, dir Dir) syscall.Errno {
	source, isSource := dir.(*SourceDir)
	if isSource && source.isOutdated(ctx) {
		return syscall.ESTALE // its name finds another node
	}
	_, err := dir.Stat(ctx)
	return Stale(dir, "", "opendir", err)
}

// NameList is a listing of a directory. Its memory counts until it is closed.
type NameList struct {
	Items []Item
	hold  budget.Hold
}

// Close drops the listing.
func (l *NameList) Close() {
	l.hold.Close()
	l.Items = nil
}

// ListDir lists a directory. The caller must close the list. ENOMEM means that there is no memory for it.
func ListDir(ctx context.Context, dir Dir) (NameList, syscall.Errno) {
	items, err := list(ctx, dir)
	if err == nil {
		err = ctx.Err() // an incomplete list would look complete
	}
	if err != nil {
		return NameList{}, Stale(dir, "", "readdir", err)
	}
	l := NameList{Items: items, hold: dir.Base().view.Memory.Hold()}
	size := 0
	for _, it := range items {
		const withoutName = 40 // bytes of an Item, about
		size += withoutName + len(it.Name)
	}
	err = l.hold.ResizeShown(int64(size))
	if err != nil {
		return NameList{}, Fail(dir, "", "readdir", err)
	}
	return l, 0
}

// list lists a directory, in a current snapshot of its session if it is about one.
func list(ctx context.Context, dir Dir) ([]Item, error) {
	snap, err := acquireCurrent(ctx, dir)
	if err != nil {
		return nil, err
	}
	if snap != nil {
		defer snap.Release()
	}
	return dir.List(ctx, snap)
}

// acquireCurrent acquires the snapshot of a directory, nil if it needs none. If the session was rewritten since
// that snapshot was made, it acquires a new one.
func acquireCurrent(ctx context.Context, dir Dir) (*sessioncore.Snapshot, error) {
	snap, err := dir.Acquire(ctx)
	if err != nil || snap == nil {
		return nil, err
	}
	changed := snap.ConfirmAll(ctx)
	if !errors.Is(changed, storage.ErrStale) {
		return snap, nil
	}
	snap.Release()
	return dir.Acquire(ctx)
}

// NameIn is a fixed name in a directory, made from a D.
type NameIn[D any] struct {
	Name string
	Kind storage.Kind
	Make func(D) Node
	// Is reports whether the name is there; nil means that it is listed.
	Is func(D, context.Context) Presence
}

// Name is a fixed name outside of the sessions, made from its directory.
type Name = NameIn[*Directory]

// Presence is the presence of a name in a directory.
type Presence int

const (
	// Absent names are not found.
	Absent Presence = iota
	// Hidden names are found, but not listed, as they may be too much work for crawlers.
	Hidden
	// Listed names are found and listed.
	Listed
)

// presentIf returns Listed if the name exists, otherwise Absent.
func presentIf(exists bool) Presence {
	if exists {
		return Listed
	}
	return Absent
}

// hiddenIf returns Hidden for an empty or missing directory. Another error is for a caller that opens it.
func hiddenIf(isEmpty bool, err error) Presence {
	switch {
	case storage.IsMissing(err):
		return Hidden
	case err != nil:
		return Listed
	case isEmpty:
		return Hidden
	}
	return Listed
}

// hidden returns the presence of names that are never listed.
func hidden[D any]() func(D, context.Context) Presence {
	return func(D, context.Context) Presence { return Hidden }
}

// fixedNames are the names of a directory, in order, for lookups and listings.
type fixedNames[D any] []NameIn[D]

// presence returns the presence of the name in d.
func (n *NameIn[D]) presence(ctx context.Context, d D) Presence {
	if n.Is == nil {
		return Listed
	}
	return n.Is(d, ctx)
}

// has reports whether a name is one of these.
func (f fixedNames[D]) has(name string) bool {
	return slices.ContainsFunc(f, func(n NameIn[D]) bool {
		return n.Name == name
	})
}

// find finds a name in the directory d. It does not check the presence of a name that was listed. The error of
// an absent name is ENOENT.
func (f fixedNames[D]) find(ctx context.Context, d D, it Item) (Child, error) {
	i := slices.IndexFunc(f, func(n NameIn[D]) bool {
		return n.Name == it.Name
	})
	if i < 0 {
		return Child{}, syscall.ENOENT
	}
	n := &f[i]
	wasListed := it.number != unnumbered
	if !wasListed && n.presence(ctx, d) == Absent {
		err := ctx.Err()
		if err != nil { // an interrupted check says nothing
			return Child{}, err
		}
		return Child{}, syscall.ENOENT
	}
	makeNode := func() Node {
		return n.Make(d)
	}
	return Child{Kind: n.Kind, Make: makeNode}, nil
}

// list lists the names in the directory d, without hidden ones.
func (f fixedNames[D]) list(ctx context.Context, d D) []Item {
	items := make([]Item, 0, len(f))
	for i := range f {
		n := &f[i]
		if n.presence(ctx, d) == Listed {
			items = append(items, Item{
				Name: n.Name,
				Kind: n.Kind,
				Bare: slowFiles[n.Name],
			})
		}
	}
	return items
}

// slowFiles are generated files; a stat of one may read much of the session. A listing omits their attributes.
var slowFiles = map[string]bool{
	"context.json": true, "edits.diff": true, "problems.jsonl": true,
	"results.tsv": true, "transcript.md": true, "usage.json": true,
}
