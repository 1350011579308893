package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// ByIDDir is by-id/: a link for each session, called by its id. Every key that --resume takes can be
// looked up: docs/design.md section 5.
type ByIDDir struct{ directory }

// NewByIDDir returns by-id/.
func NewByIDDir(view *View) *ByIDDir { return &ByIDDir{directory{node{view: view}}} }

func (d *ByIDDir) fillAttr(out *fuse.Attr) error {
	st, err := d.view.Listing.Stat()
	if err != nil {
		return err
	}
	d.fillPrivate(out, st, syscall.S_IFDIR, 0)
	return nil
}

var _ = (fusefs.NodeLookuper)((*ByIDDir)(nil))

// Lookup resolves a key as --resume does. That none has it is told in the root's last-error, but for what programs
// look for in every directory.
func (d *ByIDDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.lookUpLink(ctx, "by-id", name, func() (target, error) {
		info, err := d.view.Listing.Resume(name)
		if errors.Is(err, sessioncore.ErrNotFound) {
			err = errNoKey
		}
		if err != nil {
			return target{}, err
		}
		return target{path: linkTarget(info.DirName(), 1), st: info.Stat}, nil
	}, out)
}

// errNoKey tells what a key must be.
var errNoKey = fmt.Errorf("%w: no session's id or file name begins with it", fs.ErrNotExist)

func (d *ByIDDir) list() ([]item, error) {
	sessions, err := d.view.Listing.Look()
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(sessions.All()))
	seen := make(map[string]bool, len(sessions.All()))
	for _, info := range sessions.All() {
		if seen[info.ID] || !d.view.Listing.HasDirectory(info) {
			continue
		}
		seen[info.ID] = true
		items = append(items, d.sessionLinkItem(sessioncore.FileName(info.ID)))
	}
	sortItems(items)
	return items, nil
}

func (d *ByIDDir) lookupItem(context.Context, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return noLookup()
}

func (d *ByIDDir) follow(parts []string) ([]string, error) {
	return followLink(parts, func(name string) (string, error) {
		info, err := d.view.Listing.Resume(name)
		if err != nil {
			return "", err
		}
		return info.DirName(), nil
	})
}
