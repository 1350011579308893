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
	"sessionfs/sessioncore/storage"
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

func (d *ByIDDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*ByIDDir)(nil))

// Getattr tells when a session came or went last.
func (d *ByIDDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*ByIDDir)(nil))

// Lookup resolves a key as --resume does. That none has it is told in the root's last-error, but for what programs
// look for in every directory.
func (d *ByIDDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.lookUpLink(ctx, "by-id", name, func() (string, storage.Stat, error) {
		info, err := d.view.Listing.Resume(name)
		if errors.Is(err, sessioncore.ErrNotFound) {
			err = errNoKey
		}
		if err != nil {
			return "", storage.Stat{}, err
		}
		return linkTarget(info.DirName(), 1), info.Stat, nil
	}, out)
}

// errNoKey tells what a key must be.
var errNoKey = fmt.Errorf("%w: no session's id or file name begins with it", fs.ErrNotExist)

var _ = (fusefs.NodeOpendirHandler)((*ByIDDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *ByIDDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openListing(d)
}

func (d *ByIDDir) list() ([]item, func(), error) {
	sessions, err := d.view.Listing.Look()
	if err != nil {
		return nil, nil, err
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
	return items, nil, nil
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
