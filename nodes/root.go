package nodes

import (
	"context"
	"os"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// RootDir is the root of a mount: the directories of SOURCE that are shown, and what is generated from them.
type RootDir struct {
	directory
	names  fixedNames[*View]
	source storage.Files
	// Closed lets nobody in but the user who mounts, and root. The kernel knows only everybody (-o allow_root).
	Closed bool
}

// NewRootDir returns the root of a mount of source with those names, in order.
func NewRootDir(view *View, source storage.Files, names ...Name) *RootDir {
	view.crowd.init(maxNodes)
	return &RootDir{directory: newDirectory(view), names: names, source: source}
}

func (d *RootDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return d.names.find(ctx, d.view, it)
}

func (d *RootDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	return d.names.list(ctx, d.view, &d.node), nil
}

func (d *RootDir) fillAttr(_ context.Context, out *fuse.Attr) error {
	st, err := d.source.Stat("")
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	if d.Closed {
		out.Mode &^= 0o077
		out.Uid, out.Gid = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return nil
}

// pathFollower is a directory in the root through which paths lead to sessions.
type pathFollower interface {
	// follow turns a path below the directory into one below sessions/. Its error is that of a look-up.
	follow(ctx context.Context, parts []string) (below []string, err error)
}

// follow resolves a path through one of the names to one below sessions/, or returns layout.ErrLeadsNowhere.
func (d *RootDir) follow(ctx context.Context, parts []string) (below []string, err error) {
	err = layout.ErrLeadsNowhere
	for i := range d.names {
		if d.names[i].Name != parts[0] {
			continue
		}
		if dir, ok := d.names[i].Make(d.view).(pathFollower); ok {
			below, err = dir.follow(ctx, parts[1:])
		}
	}
	if errnoOf(err) == syscall.ENOENT {
		err = layout.ErrLeadsNowhere
	}
	return below, err
}
