package nodes

import (
	"context"
	"path"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// LinksDir is a directory in which sessions are found, by a layout: by-id/, by-cwd/ and what is below it, continue/,
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

// NewLinksDir returns a directory of links. called is what last-error calls a look-up in it that fails, "" for a
// directory whose names nobody makes up.
func NewLinksDir(view *View, dir layout.Directory, called string) *LinksDir {
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
		return child{kind: kindCwdDir, mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
			return NewLinksDir(d.view, e.Sub, d.called)
		}}, nil
	}
	fillLink(out, d.linkTo(e))
	return d.link(kindSessionLink, &cacheAttr, func(ctx context.Context) (target, error) { return d.target(ctx, it.name) }), nil
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
	return target{path: layout.RelativeTarget(d.path(), path.Join(layout.Sessions, e.Session)), st: e.Stat}
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
			items[i] = d.newItem(kindCwdDir, e.Name, syscall.S_IFDIR)
		} else {
			// The kernel may not remember the name of a link, so it looks it up before each use anyway.
			items[i] = d.newItem(kindSessionLink, e.Name, syscall.S_IFLNK)
			items[i].bare = true
		}
	}
	return items, nil
}

func (d *LinksDir) follow(ctx context.Context, parts []string) ([]string, error) {
	return layout.Follow(ctx, d.layout, parts)
}
