package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
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

func (d *ByCwdDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*ByCwdDir)(nil))

// Getattr tells when a session came or went last.
func (d *ByCwdDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*ByCwdDir)(nil))

// Lookup finds a subdirectory, a session's link, or latest.
func (d *ByCwdDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e, err := d.view.Listing.CwdFind(d.cwd, name)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	if e.Dir == "" {
		fillLink(&out.Attr, e.Session.Stat, d.target(e.Session))
		setTimeouts(out, cacheAttr)
		return d.sessionLink(ctx, name, func() (string, storage.Stat, error) {
			info, err := d.view.Listing.CwdSession(d.cwd, name)
			if err != nil {
				return "", storage.Stat{}, err
			}
			return d.target(info), info.Stat, nil
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
func (d *ByCwdDir) target(info *sessioncore.SessionInfo) string {
	up := 1 // by-cwd/ itself
	if d.cwd != "/" {
		up += strings.Count(d.cwd, "/")
	}
	return linkTarget(info.DirName(), up)
}

var _ = (fusefs.NodeOpendirHandler)((*ByCwdDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *ByCwdDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openListing(d)
}

func (d *ByCwdDir) list() ([]item, func(), error) {
	entries, err := d.view.Listing.CwdList(d.cwd)
	if err != nil {
		return nil, nil, err
	}
	items := make([]item, 0, len(entries))
	for _, e := range entries {
		if e.Dir == "" {
			items = append(items, d.sessionLinkItem(e.Name))
			continue
		}
		id := stableAttr(d.StableAttr(), kindCwdDir, e.Name, syscall.S_IFDIR)
		items = append(items, item{name: e.Name, mode: id.Mode, ino: id.Ino})
	}
	sortItems(items)
	return items, nil, nil
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
