package nodes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// Directory is the base of all directories. It says where in the mount a directory is.
type Directory struct {
	*subject
	in   *Directory // nil for the root
	name string
}

// subject is shared by the directories that show the same sessions.
type subject struct {
	view *View
	// session is the session that the directories show something of; nil for all sessions, and for
	// other files.
	session *sessioncore.Session
}

// NewDirectory returns the base of a root.
func NewDirectory(view *View) Directory { return Directory{subject: &subject{view: view}} }

// below returns the base of a directory in d.
func (d *Directory) below(name string) Directory { return Directory{d.subject, d, name} }

// of returns d as a directory of another view.
func (d Directory) of(view *View) Directory {
	if view != d.view {
		d.subject = &subject{view, d.session}
	}
	return d
}

// file returns the base of a file or a link in d.
func (d *Directory) file() node { return node{d} }

// Base returns the directory.
func (d *Directory) Base() *Directory { return d }

// View returns the part of the mount that the directory is in.
func (d *Directory) View() *View { return d.view }

// Stability is that of all directories.
func (d *Directory) Stability() Stability { return Fixed }

// Acquire is that of directories whose names are not found in one session.
func (d *Directory) Acquire(context.Context) (*sessioncore.Snapshot, error) { return nil, nil }

// List lists nothing: names can be looked up only.
func (d *Directory) List(context.Context, *sessioncore.Snapshot) ([]Item, error) { return nil, nil }

// Noted is that of directories whose names nobody makes up.
func (d *Directory) Noted() string { return "" }

// path returns the path of the directory in the mount, "" for the root.
func (d *Directory) path() string {
	if d.in == nil {
		return ""
	}
	return d.in.pathOf(d.name)
}

// pathOf returns the path of a node in the directory.
func (d *Directory) pathOf(name string) string {
	if dir := d.path(); dir != "" {
		return dir + "/" + name
	}
	return name
}

// Look is one state of a directory, in which a door finds names.
type Look struct {
	dir  Dir
	snap *sessioncore.Snapshot // nil if the names are not found in one
}

// NewLook returns the state of a directory now. The caller must close it.
func NewLook(ctx context.Context, dir Dir) (Look, error) {
	snap, err := dir.Acquire(ctx)
	return Look{dir, snap}, err
}

// Close ends the look.
func (l *Look) Close() {
	if l.snap != nil {
		l.snap.Release()
	}
	*l = Look{}
}

// Find finds the child of a name. Its attributes may be unknown: Attr returns them.
func (l *Look) Find(ctx context.Context, it Item) (Child, syscall.Errno) {
	c, err := l.dir.Find(ctx, l.snap, it)
	if l.snap != nil && errors.Is(err, sessioncore.ErrNotFound) {
		err = cmp.Or(l.snap.Confirm(ctx), err) // where that fails, the caller looks again
	}
	if err != nil {
		return Child{}, NoName(l.dir, it.Name, err)
	}
	return c, 0
}

// Attr returns the attributes of a child that was found, whose node is n, and ends the look-up of
// its name.
func (l *Look) Attr(ctx context.Context, name string, c *Child, n Node) (a Attr, errno syscall.Errno) {
	if a = c.Attr; a.Kind == storage.KindOther {
		var err error
		if a, err = n.Stat(ctx); err != nil {
			return a, NoName(l.dir, name, err)
		}
	}
	if noted := l.dir.Noted(); noted != "" {
		l.dir.Base().view.found(noted)
	}
	return a, 0
}

// Outdated is implemented by directories whose name may have become another node's. A door looks
// the path up again.
type Outdated interface {
	Dir
	IsOutdated(context.Context) bool
}

// OpenDir returns the errno of opening a directory for listing: ESTALE if it is gone, so that a
// door that remembers directories looks the path up again.
func OpenDir(ctx context.Context, dir Dir) syscall.Errno {
	if o, ok := dir.(Outdated); ok && o.IsOutdated(ctx) {
		return syscall.ESTALE
	}
	if _, err := dir.Stat(ctx); err != nil {
		return Fail(dir, "", "opendir", staleIfGone(err))
	}
	return 0
}

// NameList is a listing of a directory, whose memory counts until it is closed.
type NameList struct {
	Items []Item
	hold  budget.Hold
}

// Close drops the listing.
func (l *NameList) Close() {
	l.hold.Close()
	l.Items = nil
}

// ListDir lists a directory.
func ListDir(ctx context.Context, dir Dir) (NameList, syscall.Errno) {
	items, err := list(ctx, dir)
	if err = cmp.Or(err, ctx.Err()); err != nil { // a list that was not finished would look like a whole one
		return NameList{}, Fail(dir, "", "readdir", staleIfGone(err))
	}
	l := NameList{Items: items, hold: dir.Base().view.Memory.Hold()}
	if err := l.hold.ResizeShown(memoryOf(items)); err != nil {
		return NameList{}, Fail(dir, "", "readdir", err)
	}
	return l, 0
}

// list lists a directory in a snapshot of its session.
func list(ctx context.Context, dir Dir) ([]Item, error) {
	snap, err := dir.Acquire(ctx)
	if err == nil && snap != nil && errors.Is(snap.Confirm(ctx), storage.ErrStale) {
		snap.Release()
		snap, err = dir.Acquire(ctx)
	}
	if err != nil {
		return nil, err
	}
	if snap != nil {
		defer snap.Release()
	}
	return dir.List(ctx, snap)
}

// memoryOf returns how many bytes a list takes, roughly.
func memoryOf(items []Item) int64 {
	const perItem = 40 // without its name
	n := int64(len(items)) * perItem
	for _, it := range items {
		n += int64(len(it.Name))
	}
	return n
}

// NameIn is a fixed name in a directory that is made from a D.
type NameIn[D any] struct {
	Name string
	Kind storage.Kind
	Make func(D) Node
	// Is reports whether the name is there; nil means that it is listed.
	Is func(D, context.Context) Presence
}

// Name is a fixed name outside of the sessions, made from the directory that it is in.
type Name = NameIn[*Directory]

// Presence says whether there is a name in a directory.
type Presence int

const (
	// Absent names are not found.
	Absent Presence = iota
	// Hidden names are found, but not listed: what is there may be so much work that no crawler may
	// start it.
	Hidden
	// Listed names are found and listed.
	Listed
)

// presentIf returns Listed for what is there.
func presentIf(there bool) Presence {
	if there {
		return Listed
	}
	return Absent
}

// fixedNames are names of a directory, in order: the one list that drives look-ups and listings.
type fixedNames[D any] []NameIn[D]

func (n *NameIn[D]) is(ctx context.Context, d D) Presence {
	if n.Is == nil {
		return Listed
	}
	return n.Is(d, ctx)
}

func (f fixedNames[D]) has(name string) bool {
	return slices.ContainsFunc(f, func(n NameIn[D]) bool { return n.Name == name })
}

// find finds a name. What was listed is not looked for again.
func (f fixedNames[D]) find(ctx context.Context, d D, it Item) (Child, error) {
	for i := range f {
		n := &f[i]
		if n.Name != it.Name {
			continue
		}
		if it.number == unnumbered && n.is(ctx, d) == Absent {
			return Child{}, cmp.Or(ctx.Err(), error(syscall.ENOENT))
		}
		return Child{Kind: n.Kind, Make: func() Node { return n.Make(d) }}, nil
	}
	return Child{}, syscall.ENOENT
}

// list lists the names in a directory.
func (f fixedNames[D]) list(ctx context.Context, d D) []Item {
	items := make([]Item, 0, len(f))
	for i := range f {
		if n := &f[i]; n.is(ctx, d) == Listed {
			items = append(items, Item{Name: n.Name, Kind: n.Kind, Bare: slowFiles[n.Name]})
		}
	}
	return items
}

// slowFiles are generated files whose size may take reading much of the session, or looking at all
// sessions. A listing leaves out their attributes.
var slowFiles = map[string]bool{
	"context.json": true, "index.jsonl": true, "problems.jsonl": true,
	"results.tsv": true, "transcript.md": true, "usage.json": true,
}
