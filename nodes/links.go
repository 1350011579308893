package nodes

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// Link is a symbolic link whose target is found each time it is read: branches/current, a label in by-label/, a link
// of SOURCE, and with an own rule links to sessions and links that lead to one place.
type Link struct {
	node
	find findTarget
	rule *cacheRule // nil for cacheNever
}

func (l *Link) cache() cacheRule {
	if l.rule == nil {
		return cacheNever
	}
	return *l.rule
}

// findTarget finds where a link leads now.
type findTarget func(context.Context) (target, error)

// target is where a symbolic link leads, and what its attributes come from.
type target struct {
	path string
	st   storage.Stat // owner and times
	time time.Time    // both times; zero: those of st
}

func (l *Link) fillAttr(ctx context.Context, out *fuse.Attr) error {
	to, err := l.find(ctx)
	if err == nil {
		fillLink(out, to)
	}
	return err
}

// fillLink sets the attributes of a symbolic link.
func fillLink(out *fuse.Attr, to target) {
	out.Mode = syscall.S_IFLNK | 0o777
	out.Size = uint64(len(to.path))
	out.Nlink = 1
	fillOwner(out, to.st)
	if to.time.IsZero() {
		fillTimes(out, to.st.ModTime(), time.Unix(0, to.st.Changed))
	} else {
		fillTimes(out, to.time, to.time)
	}
}

var _ = (fusefs.NodeReadlinker)((*Link)(nil))

// Readlink returns where the link leads now.
func (l *Link) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	to, err := l.find(ctx)
	if err != nil {
		return nil, l.fail("readlink", staleIfGone(err))
	}
	return []byte(to.path), 0
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

// link is the child that is such a link.
func (n *node) link(rule *cacheRule, find findTarget) child {
	return child{mode: syscall.S_IFLNK, make: func() fusefs.InodeEmbedder {
		return &Link{node: node{view: n.view}, find: find, rule: rule}
	}}
}

// fixedLink is a link whose target does not change while the session only grows: in tree/ entry.json, which leads to the
// entry's file, or a child whose directory is in .deep; a branch in branches/; an entry in path/. After a rewrite of the
// session, a link with another target or time is another node. It sets the attributes.
func (n *node) fixedLink(session *sessioncore.Session, to target, out *fuse.Attr) child {
	fillLink(out, to)
	path, time := to.path, to.time
	c := n.link(&cacheSecond, func(ctx context.Context) (target, error) {
		st, err := session.Probe(ctx)
		if err != nil {
			err = fmt.Errorf("the session of %s: %w", path, err)
		}
		return target{path, st, time}, err
	})
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(path), time.UnixMilli(), 10))
	c.content = sum.Sum64()
	return c
}

// LinksDir is a directory in which sessions are found, by a layout: by-id/, by-cwd/, by-date/ and what is below them, continue/,
// recent/.
type LinksDir struct {
	directory
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
	return Name{name, syscall.S_IFDIR, func(view *View) fusefs.InodeEmbedder { return newLinksDir(view, dir, called) }, nil}
}

func newLinksDir(view *View, dir layout.Directory, called string) *LinksDir {
	return &LinksDir{directory: newDirectory(view), layout: dir, called: called}
}

func (d *LinksDir) noted() string { return d.called }

func (d *LinksDir) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := d.layout.Stat(ctx)
	if err != nil {
		return err
	}
	d.fillPrivate(out, st, syscall.S_IFDIR, 0)
	return nil
}

// find finds a link to a session or a subdirectory.
func (d *LinksDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	e, err := d.entry(ctx, it.name)
	if err != nil {
		return child{}, err
	}
	if e.Sub != nil {
		d.fillPrivate(out, e.Stat, syscall.S_IFDIR, 0)
		return child{mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
			return newLinksDir(d.view, e.Sub, d.called)
		}}, nil
	}
	fillLink(out, d.linkTo(e))
	return d.link(&cacheAttr, func(ctx context.Context) (target, error) { return d.target(ctx, it.name) }), nil
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

func (d *LinksDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	now := time.Now()
	entries, err := d.layout.List(ctx)
	if err != nil {
		return nil, err
	}
	d.lookedAt.Store(now.UnixNano())
	items := make([]item, len(entries))
	for i, e := range entries {
		if e.Sub != nil {
			items[i] = d.newItem(e.Name, syscall.S_IFDIR)
		} else {
			// The kernel may not remember the name of a link, so it looks it up before each use anyway.
			items[i] = d.newItem(e.Name, syscall.S_IFLNK)
			items[i].bare = true
		}
	}
	return items, nil
}

// ChildrenDir is children/ in the directory of a session: links to the sessions whose parent it is. What it lists is
// looked for when it is listed; its own attributes are those of the session's directory.
type ChildrenDir struct{ aboutSessions }

// find finds the link to a child.
func (d *ChildrenDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	find := func(ctx context.Context) (target, error) { return d.target(ctx, it.name) }
	to, err := find(ctx)
	fillLink(out, to)
	return d.link(&cacheAttr, find), err
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

func (d *ChildrenDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	children, err := d.view.Family.Children(ctx, d.member())
	if errors.Is(err, sessioncore.ErrNotFound) {
		err = nil
	}
	items := make([]item, 0, len(children))
	for _, child := range children {
		it := d.newItem(child.Name, syscall.S_IFLNK)
		it.bare = true // as in LinksDir
		items = append(items, it)
	}
	return items, err
}

// ByLabelDir is by-label/: a link to the entry that each label in effect is on, in the order in which the
// labels were set.
type ByLabelDir struct{ snapshotDir }

// find finds a label.
func (d *ByLabelDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return d.link(nil, inSession(d.session, labelledEntry(it.name))), nil
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

func (d *ByLabelDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	labels := report.ByLabel(snap)
	items := make([]item, len(labels))
	for i, l := range labels {
		items[i] = d.newItem(l.Name, syscall.S_IFLNK)
	}
	return items, nil
}
