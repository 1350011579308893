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

// targetLink is a symbolic link. Each read finds its target. Links to sessions are Relinked,
// those with a constant target Fixed; others change: branches/current, a label in by-label/, a link
// of SOURCE.
type targetLink struct {
	node
	find      findTarget
	stability Stability
}

func (l *targetLink) Stability() Stability { return l.stability }

// findTarget finds the current target of a link.
type findTarget func(context.Context) (target, error)

// target is the target of a symbolic link, and the source of its attributes.
type target struct {
	path string
	st   storage.Stat // owner, and times if time is zero
	time time.Time    // both times, unless it is zero
}

// targetOfEntry returns a target with the owner of the session and the time of an entry.
func targetOfEntry(snap *sessioncore.Snapshot, e sessioncore.Entry, path string) target {
	return target{
		path: path,
		st:   snap.Stat(),
		time: snap.Time(e),
	}
}

func (l *targetLink) Stat(ctx context.Context) (Attr, error) {
	to, err := l.find(ctx)
	return to.attr(), err
}

// attr returns the attributes of a symbolic link.
func (to *target) attr() Attr {
	a := fileAttr(to.st, int64(len(to.path)))
	a.Kind = storage.KindLink
	a.Mode = 0o777
	if !to.time.IsZero() {
		a = a.withTimes(to.time, to.time)
	}
	return a
}

func (l *targetLink) Target(ctx context.Context) (string, error) {
	to, err := l.find(ctx)
	return to.path, err
}

// inSession returns a findTarget over the current snapshot of a session.
func inSession(session *sessioncore.Session, find func(*sessioncore.Snapshot) (target, error)) findTarget {
	return func(ctx context.Context) (target, error) {
		snap, err := session.Acquire(ctx)
		if err != nil {
			return target{}, err
		}
		defer snap.Release()
		return find(snap)
	}
}

// link returns the child of a link.
func (d *Directory) link(find findTarget, stability Stability) Child {
	return Child{
		Kind: storage.KindLink,
		Make: func() Node {
			return &targetLink{node: d.file(), find: find, stability: stability}
		},
	}
}

// sessionLink returns the child of a link to a session, with its current target.
func (d *Directory) sessionLink(find findTarget, now target) Child {
	c := d.link(find, Relinked)
	c.Attr = now.attr()
	return c
}

// steadyLink returns the child of a link with a target that stays the same while the session only grows:
// in tree/ entry.json, or a child whose directory is in .deep; a branch in branches/; an entry in
// path/. After a rewrite of the session, a link with another target or time is another node.
func (d *Directory) steadyLink(session *sessioncore.Session, to target) Child {
	path := to.path
	entryTime := to.time
	find := func(ctx context.Context) (target, error) {
		st, err := session.Probe(ctx)
		if err != nil {
			err = fmt.Errorf("the session of %s: %w", path, err)
		}
		return target{path: path, st: st, time: entryTime}, err
	}
	identity := strconv.AppendInt([]byte(path), entryTime.UnixMilli(), 10)
	sum := fnv.New64a()
	_, _ = sum.Write(identity)
	c := d.link(find, Fixed)
	c.Content = sum.Sum64()
	c.Attr = to.attr()
	return c
}

// LinksDir is a directory of links to sessions, by a layout: by-id/, by-cwd/, by-date/ and the
// directories below them, continue/, recent/.
type LinksDir struct {
	Directory
	layout layout.LinkDirectory
	// refusalName is the directory's name in last-error; "" if failed lookups are not recorded.
	refusalName string
	// scannedAt is the time of the last scan, by a listing or later lookups, ns since the epoch.
	scannedAt atomic.Int64
}

// scanLife is how long a scan of all sessions serves the lookups after a listing. Each
// link is looked up several times when its directory is listed, and a scan of ten thousand
// directories takes a tenth of a second.
const scanLife = time.Second

// LinksName is a directory of links as a name. refusalName is its name in last-error for failed
// lookups, "" if these are not recorded.
func LinksName(name string, dir layout.LinkDirectory, refusalName string) Name {
	return Name{
		Name: name,
		Kind: storage.KindDir,
		Make: func(d *Directory) Node {
			return &LinksDir{Directory: d.below(name), layout: dir, refusalName: refusalName}
		},
	}
}

// UnlessEmpty is LinksName for a directory that is not listed while it is empty.
func UnlessEmpty(name string, dir layout.LinkDirectory, refusalName string) Name {
	n := LinksName(name, dir, refusalName)
	n.Is = func(_ *Directory, ctx context.Context) Presence {
		entries, err := dir.List(ctx)
		return hiddenIf(len(entries) == 0, err)
	}
	return n
}

func (d *LinksDir) Noted() string { return d.refusalName }

func (d *LinksDir) Stat(ctx context.Context) (Attr, error) {
	st, err := d.layout.Stat(ctx)
	return d.view.dirAttr(st).private(), err
}

// Find finds a link to a session or a subdirectory.
func (d *LinksDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	e, err := d.entry(ctx, it.Name)
	if err != nil {
		return Child{}, err
	}
	if e.Sub != nil {
		makeNode := func() Node {
			return &LinksDir{
				Directory:   d.below(it.Name),
				layout:      e.Sub,
				refusalName: d.refusalName,
			}
		}
		sub := Child{
			Kind: storage.KindDir,
			Attr: d.view.dirAttr(e.Stat).private(),
			Make: makeNode,
		}
		return sub, nil
	}
	find := func(ctx context.Context) (target, error) {
		return d.target(ctx, it.Name)
	}
	return d.sessionLink(find, d.linkTo(e)), nil
}

// entry finds the entry of a name. Soon after a listing it reads only the session's own file; where
// that does not suffice, and once a second, it scans all sessions. While a long listing is in progress, such a
// scan serves the next lookups.
func (d *LinksDir) entry(ctx context.Context, name string) (layout.LinkEntry, error) {
	now := time.Now()
	age := now.Sub(time.Unix(0, d.scannedAt.Load()))
	isClockSet := age < 0 // back, so that the age is not known
	if !isClockSet && age < scanLife {
		e, err := d.layout.Find(ctx, name, true)
		if err == nil {
			return e, nil
		}
	}
	e, err := d.layout.Find(ctx, name, false)
	isListing := !isClockSet && age < 2*scanLife
	if err == nil && isListing {
		d.scannedAt.Store(now.UnixNano())
	}
	return e, err
}

// target finds the current target of a link. The error is ErrNotFound if the name is a directory's now.
func (d *LinksDir) target(ctx context.Context, name string) (target, error) {
	e, err := d.entry(ctx, name)
	if err == nil && e.Sub != nil {
		err = sessioncore.ErrNotFound
	}
	return d.linkTo(e), err
}

// linkTo returns the target of an entry that is a link to a session.
func (d *LinksDir) linkTo(e layout.LinkEntry) target {
	return target{path: layout.RelativeTarget(d.path(), e.Session), st: e.Stat}
}

// List lists the names of the layout, and begins the time of the last scan.
func (d *LinksDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	now := time.Now()
	entries, err := d.layout.List(ctx)
	if err != nil {
		return nil, err
	}
	d.scannedAt.Store(now.UnixNano())
	items := make([]Item, len(entries))
	for i, e := range entries {
		items[i] = Item{Name: e.Name, Kind: storage.KindDir}
		if e.Sub == nil { // the name of a link is looked up before each use anyway
			items[i].Kind = storage.KindLink
			items[i].Bare = true
		}
	}
	return items, nil
}

// ChildrenDir is children/ in the directory of a session: links to the sessions that have it as their parent.
// A listing finds them. The directory has the attributes of the session's directory.
type ChildrenDir struct{ aboutSessions }

// Find finds the link to a child by the name of the child's file.
func (d *ChildrenDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	find := func(ctx context.Context) (target, error) {
		return d.target(ctx, it.Name)
	}
	to, err := find(ctx)
	return d.sessionLink(find, to), err
}

// target finds the target of the link to a child. It has the owner and the times of the child.
func (d *ChildrenDir) target(ctx context.Context, name string) (target, error) {
	child, err := d.view.Family.Child(ctx, d.member(), name)
	if err != nil {
		return target{}, err
	}
	st, err := child.Session.Probe(ctx)
	return target{path: layout.RelativeTarget(d.path(), child.Path()), st: st}, err
}

// List lists the children, none if the session is gone.
func (d *ChildrenDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	children, err := d.view.Family.Children(ctx, d.member())
	if errors.Is(err, sessioncore.ErrNotFound) {
		err = nil
	}
	items := make([]Item, 0, len(children))
	for _, child := range children {
		items = append(items, Item{
			Name: child.Name,
			Kind: storage.KindLink,
			Bare: true, // as in LinksDir
		})
	}
	return items, err
}

// ByLabelDir is by-label/: a link to the entry of each label in effect, in the order of setting.
type ByLabelDir struct{ snapshotDir }

// Find finds the link of a label, also if no entry has that label: its target is found when it is read.
func (d *ByLabelDir) Find(_ context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	find := inSession(d.session, func(snap *sessioncore.Snapshot) (target, error) {
		l, err := report.FindByLabel(snap, it.Name)
		if err != nil {
			return target{}, err
		}
		to := target{
			path: "../" + layout.EntryPath(snap, l.Entry),
			st:   snap.Stat(),
			time: l.Time,
		}
		return to, nil
	})
	return d.link(find, Changing), nil
}

// List lists a link for each label.
func (d *ByLabelDir) List(_ context.Context, snap *sessioncore.Snapshot) ([]Item, error) {
	labels := report.ByLabel(snap)
	items := make([]Item, len(labels))
	for i, l := range labels {
		items[i] = Item{Name: l.Name, Kind: storage.KindLink}
	}
	return items, nil
}
