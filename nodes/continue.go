package nodes

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// ContinueDir is continue/: for each terminal a link to the session that its breadcrumb leads to. A
// breadcrumb that leads to no session of this store is not there.
type ContinueDir struct {
	directory
	crumbs storage.Storage
}

// NewContinueDir returns continue/ for the breadcrumbs in a storage.
func NewContinueDir(view *View, crumbs storage.Storage) *ContinueDir {
	return &ContinueDir{directory: directory{node{view: view}}, crumbs: crumbs}
}

func (d *ContinueDir) fillAttr(out *fuse.Attr) error {
	st, err := d.crumbs.Stat("")
	if err != nil {
		return err
	}
	d.fillPrivate(out, st, syscall.S_IFDIR, 0)
	return nil
}

// find returns the session's directory to which the link of a terminal leads, and the breadcrumb's attributes.
func (d *ContinueDir) find(terminal string) (dir string, st storage.Stat, err error) {
	if terminal[0] == '.' {
		return "", storage.Stat{}, fmt.Errorf("%w: no terminal is called %q", sessioncore.ErrNotFound, terminal)
	}
	if st, err = d.crumbs.Stat(terminal); err != nil {
		return "", st, err
	}
	file, err := sessioncore.ReadBreadcrumb(d.crumbs, terminal)
	if err != nil {
		return "", st, err
	}
	session, err := d.view.Listing.Locate(file)
	if err != nil {
		return "", st, err
	}
	return strings.TrimSuffix(session.Name(), sessionSuffix), st, nil
}

func (d *ContinueDir) follow(parts []string) ([]string, error) {
	return followLink(parts, func(name string) (string, error) {
		dir, _, err := d.find(name)
		return dir, err
	})
}

var _ = (fusefs.NodeLookuper)((*ContinueDir)(nil))

// Lookup follows the breadcrumb of a terminal. Why one leads nowhere is told in the root's last-error.
func (d *ContinueDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.lookUpLink(ctx, "continue", name, func() (target, error) {
		dir, st, err := d.find(name)
		if err != nil {
			return target{}, err
		}
		return target{path: linkTarget(dir, 1), st: st}, nil
	}, out)
}

func (d *ContinueDir) list() ([]item, error) {
	crumbs, err := d.crumbs.List("")
	if err != nil {
		return nil, err
	}
	var items []item
	for _, crumb := range crumbs {
		if crumb.Kind != storage.KindFile {
			continue
		}
		if _, _, err := d.find(crumb.Name); err == nil {
			items = append(items, d.sessionLinkItem(crumb.Name))
		}
	}
	return items, nil
}

func (d *ContinueDir) lookupItem(context.Context, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return noLookup()
}
