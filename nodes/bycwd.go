package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// ByCwdDir is by-cwd/ and all directories below it: they nest like the real directories in which the
// sessions were. In each there is a link to every session of just that directory, and latest.
type ByCwdDir struct {
	directory
	cwd string // the real directory, an absolute path
}

// NewByCwdDir returns by-cwd/.
func NewByCwdDir(view *View) *ByCwdDir {
	return &ByCwdDir{directory: directory{node{view: view}}, cwd: "/"}
}

func (d *ByCwdDir) fillAttr(out *fuse.Attr) error {
	st, err := d.view.Listing.CwdStat(d.cwd)
	if err != nil {
		return err
	}
	d.fillPrivate(out, st, syscall.S_IFDIR, 0)
	return nil
}

var _ = (fusefs.NodeLookuper)((*ByCwdDir)(nil))

// Lookup finds a subdirectory, a session's link, or latest.
func (d *ByCwdDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e, err := d.view.Listing.CwdFind(d.cwd, name)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	if e.Dir == "" {
		fillLink(&out.Attr, d.target(e.Session))
		setTimeouts(out, cacheAttr)
		return d.sessionLink(ctx, name, func() (target, error) {
			info, err := d.view.Listing.CwdSession(d.cwd, name)
			if err != nil {
				return target{}, err
			}
			return d.target(info), nil
		}), 0
	}
	id := stableAttr(d.StableAttr(), kindCwdDir, name, syscall.S_IFDIR)
	d.fillPrivate(&out.Attr, e.Stat, syscall.S_IFDIR, 0)
	setTimeouts(out, cacheSecond)
	return d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &ByCwdDir{directory: directory{node{view: d.view}}, cwd: e.Dir}
	}), 0
}

// target leads from the directory to a session.
func (d *ByCwdDir) target(info *sessioncore.SessionInfo) target {
	up := 1 // by-cwd/ itself
	if d.cwd != "/" {
		up += strings.Count(d.cwd, "/")
	}
	return target{path: linkTarget(info.DirName(), up), st: info.Stat}
}

func (d *ByCwdDir) list() ([]item, error) {
	entries, err := d.view.Listing.CwdList(d.cwd)
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(entries))
	for _, e := range entries {
		if e.Dir == "" {
			items = append(items, d.sessionLinkItem(e.Name))
			continue
		}
		items = append(items, d.newItem(kindCwdDir, e.Name, syscall.S_IFDIR))
	}
	sortItems(items)
	return items, nil
}

func (d *ByCwdDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if it.mode == syscall.S_IFLNK {
		return noLookup()
	}
	return d.Lookup(ctx, it.name, out)
}

// follow goes down the directories to a link.
func (d *ByCwdDir) follow(parts []string) ([]string, error) {
	cwd := d.cwd
	for i, name := range parts {
		e, err := d.view.Listing.CwdFind(cwd, name)
		if err != nil {
			return nil, err
		}
		if e.Dir == "" {
			return followLink(parts[i:], func(string) (string, error) { return e.Session.DirName(), nil })
		}
		cwd = e.Dir
	}
	return nil, errLeadsNowhere
}
