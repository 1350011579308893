package nodes

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync/atomic"
	"time"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// targetLink is a symbolic link whose target is found each time it is read: branches/current, a label in by-label/, a
// link of SOURCE.
type targetLink struct {
	node
	find findTarget
}

// sessionLink is a link to a session.
type sessionLink struct{ targetLink }

// Stability is that of a link to a session.
func (l *sessionLink) Stability() Stability { return Relinked }

// steadyLink is a link that always leads to one place.
type steadyLink struct{ targetLink }

// Stability is that of a link to one place.
func (l *steadyLink) Stability() Stability { return Fixed }

// findTarget finds where a link leads now.
type findTarget func(context.Context) (target, error)

// target is where a symbolic link leads, and what its attributes come from.
type target struct {
	path string
	st   storage.Stat // owner and times
	time time.Time    // both times; zero: those of st
}

// Stat finds the target.
func (l *targetLink) Stat(ctx context.Context) (Attr, error) {
	to, err := l.find(ctx)
	if err != nil {
		return Attr{}, err
	}
	return to.attr(), nil
}

// attr returns the attributes of a symbolic link.
func (to *target) attr() Attr {
	a := fileAttr(to.st, int64(len(to.path)))
	a.Kind, a.Mode = storage.KindLink, 0o777
	if !to.time.IsZero() {
		a = a.at(to.time, to.time)
	}
	return a
}

// Target returns where the link leads now.
func (l *targetLink) Target(ctx context.Context) (string, error) {
	to, err := l.find(ctx)
	return to.path, err
}

// inSession returns a findTarget that looks in the current snapshot of a session, whose owner the link has. A zero
// time stands for the times of the session file.
func inSession(session *sessioncore.Session, find func(*sessioncore.Snapshot) (path string, t time.Time, err error)) findTarget {
	return func(ctx context.Context) (target, error) {
		snap, err := session.Acquire(ctx)
		if err != nil {
			return target{}, err
		}
		defer snap.Release()
		path, t, err := find(snap)
		return target{path, snap.Stat(), t}, err
	}
}

// link is the child that is a targetLink.
func (d *Directory) link(find findTarget) Child {
	return Child{Kind: storage.KindLink, Make: func() Node { return &targetLink{d.file(), find} }}
}

// sessionLink is the child that is a sessionLink, with its target now.
func (d *Directory) sessionLink(find findTarget, now target) Child {
	make := func() Node { return &sessionLink{targetLink{d.file(), find}} }
	return Child{Kind: storage.KindLink, Attr: now.attr(), Make: make}
}

// steadyLink is the child that is a steadyLink, whose target does not change while the session only grows: in tree/
// entry.json, which leads to the entry's file, or a child whose directory is in .deep; a branch in branches/; an entry in
// path/. After a rewrite of the session, a link with another target or time is another node.
func (d *Directory) steadyLink(session *sessioncore.Session, to target) Child {
	path, time := to.path, to.time
	find := func(ctx context.Context) (target, error) {
		st, err := session.Probe(ctx)
		if err != nil {
			err = fmt.Errorf("the session of %s: %w", path, err)
		}
		return target{path, st, time}, err
	}
	make := func() Node { return &steadyLink{targetLink{d.file(), find}} }
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(path), time.UnixMilli(), 10))
	return Child{Kind: storage.KindLink, Content: sum.Sum64(), Attr: to.attr(), Make: make}
}

// LinksDir is a directory in which sessions are found, by a layout: by-id/, by-cwd/, by-date/ and what is below them, continue/,
// recent/.
type LinksDir struct {
	Directory
	layout layout.Directory
	// called is what last-error calls a look-up that fails; "" if such look-ups are not noted.
	called string
	// lookedAt is when all sessions were looked at, for a listing or for look-ups that followed it, ns since the epoch.
	lookedAt atomic.Int64
}

// sharedLook is for how long one look at all sessions serves all look-ups that follow a listing. Each link is looked up
// several times when its directory is listed, and to look at ten thousand directories takes a tenth of a second.
const sharedLook = time.Second

// LinksName is a directory of links as a name. called is what last-error calls a look-up in it that fails, "" for a
// directory whose names nobody makes up.
func LinksName(name string, dir layout.Directory, called string) Name {
	return Name{name, storage.KindDir, func(d *Directory) Node { return newLinksDir(d.below(name), dir, called) }, nil}
}

func newLinksDir(base Directory, dir layout.Directory, called string) *LinksDir {
	return &LinksDir{Directory: base, layout: dir, called: called}
}

// Noted is the name that last-error has.
func (d *LinksDir) Noted() string { return d.called }

// Stat returns the attributes of the directory that the layout tells.
func (d *LinksDir) Stat(ctx context.Context) (Attr, error) {
	st, err := d.layout.Stat(ctx)
	if err != nil {
		return Attr{}, err
	}
	return d.view.dirAttr(st).private(), nil
}

// Find finds a link to a session or a subdirectory.
func (d *LinksDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	e, err := d.entry(ctx, it.Name)
	if err != nil {
		return Child{}, err
	}
	if e.Sub != nil {
		return Child{Kind: storage.KindDir, Attr: d.view.dirAttr(e.Stat).private(), Make: func() Node {
			return newLinksDir(d.below(it.Name), e.Sub, d.called)
		}}, nil
	}
	find := func(ctx context.Context) (target, error) { return d.target(ctx, it.Name) }
	return d.sessionLink(find, d.linkTo(e)), nil
}

// entry finds what a name stands for. Soon after a listing it looks at the file of the session alone; where that does not
// tell, and once a second, at all of them.
func (d *LinksDir) entry(ctx context.Context, name string) (layout.Entry, error) {
	now := time.Now()
	age := now.Sub(time.Unix(0, d.lookedAt.Load()))
	if age >= 0 && age < sharedLook {
		if e, err := d.layout.Find(ctx, name, true); err == nil {
			return e, nil
		}
	}
	e, err := d.layout.Find(ctx, name, false)
	if err == nil && age >= 0 && age < 2*sharedLook { // the names of a long listing are being gone through
		d.lookedAt.Store(now.UnixNano())
	}
	return e, err
}

// target finds what a link leads to.
func (d *LinksDir) target(ctx context.Context, name string) (target, error) {
	e, err := d.entry(ctx, name)
	if err == nil && e.Sub != nil {
		err = sessioncore.ErrNotFound
	}
	if err != nil {
		return target{}, err
	}
	return d.linkTo(e), nil
}

func (d *LinksDir) linkTo(e layout.Entry) target {
	return target{path: layout.RelativeTarget(d.path(), e.Session), st: e.Stat}
}

// List lists the links and the subdirectories.
func (d *LinksDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	now := time.Now()
	entries, err := d.layout.List(ctx)
	if err != nil {
		return nil, err
	}
	d.lookedAt.Store(now.UnixNano())
	items := make([]Item, len(entries))
	for i, e := range entries {
		if e.Sub != nil {
			items[i] = Item{Name: e.Name, Kind: storage.KindDir}
		} else {
			// The name of a link is looked up before each use anyway.
			items[i] = Item{Name: e.Name, Kind: storage.KindLink, Bare: true}
		}
	}
	return items, nil
}

// ChildrenDir is children/ in the directory of a session: links to the sessions whose parent it is. What it lists is
// looked for when it is listed; its own attributes are those of the session's directory.
type ChildrenDir struct{ aboutSessions }

// Find finds the link to a child.
func (d *ChildrenDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	find := func(ctx context.Context) (target, error) { return d.target(ctx, it.Name) }
	to, err := find(ctx)
	return d.sessionLink(find, to), err
}

// target finds where the link to a child leads. It has the owner and the times of the child.
func (d *ChildrenDir) target(ctx context.Context, name string) (target, error) {
	child, err := d.view.Family.Child(ctx, d.member(), name)
	if err != nil {
		return target{}, err
	}
	st, err := child.Session.Probe(ctx)
	return target{path: layout.RelativeTarget(d.path(), child.Path()), st: st}, err
}

// List lists the children.
func (d *ChildrenDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	children, err := d.view.Family.Children(ctx, d.member())
	if errors.Is(err, sessioncore.ErrNotFound) {
		err = nil
	}
	items := make([]Item, 0, len(children))
	for _, child := range children {
		items = append(items, Item{Name: child.Name, Kind: storage.KindLink, Bare: true}) // as in LinksDir
	}
	return items, err
}

// ByLabelDir is by-label/: a link to the entry that each label in effect is on, in the order in which the
// labels were set.
type ByLabelDir struct{ snapshotDir }

// Find finds a label.
func (d *ByLabelDir) Find(_ context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	return d.link(inSession(d.session, labelledEntry(it.Name))), nil
}

// labelledEntry returns a function that finds the entry with a label.
func labelledEntry(name string) func(*sessioncore.Snapshot) (string, time.Time, error) {
	return func(snap *sessioncore.Snapshot) (string, time.Time, error) {
		l, err := report.FindByLabel(snap, name)
		if err != nil {
			return "", time.Time{}, err
		}
		return "../" + layout.EntryPath(snap, l.Entry), l.Time, nil
	}
}

// List lists the labels in effect.
func (d *ByLabelDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	labels := report.ByLabel(snap)
	items := make([]Item, len(labels))
	for i, l := range labels {
		items[i] = Item{Name: l.Name, Kind: storage.KindLink}
	}
	return items, nil
}
