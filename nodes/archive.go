package nodes

import (
	"context"
	"slices"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// ArchiveDir is archive/: SOURCE/archive/sessions as it is, with a directory beside each compressed session, and
// index.jsonl. Nothing in it can be changed.
type ArchiveDir struct {
	SourceDir
	index Name
}

// NewArchiveDir returns the directory that shows the root of a storage. sessions are those of the same files uncompressed.
func NewArchiveDir(view *View, files storage.Files, sessions *sessioncore.Store) *ArchiveDir {
	return &ArchiveDir{
		SourceDir: SourceDir{directory: directory{node{view: view}}, storage: files, sessions: sessions},
		index:     IndexName(view),
	}
}

var _ = (fusefs.NodeLookuper)((*ArchiveDir)(nil))

// Lookup finds index.jsonl, or what a SourceDir finds.
func (d *ArchiveDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if name == d.index.Name {
		return d.enterName(ctx, d.index, out)
	}
	return d.SourceDir.Lookup(ctx, name, out)
}

func (d *ArchiveDir) list(ctx context.Context) ([]item, error) {
	items, err := d.SourceDir.list(ctx)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(it item) bool { return it.name == d.index.Name })
	if d.index.isListed(ctx) {
		items = append(items, d.newItem(kindStatic, d.index.Name, d.index.Mode))
		sortItems(items)
	}
	return items, nil
}

func (d *ArchiveDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if slowFiles[it.name] {
		return nil, syscall.ENOENT // the kernel then looks it up itself
	}
	return d.SourceDir.lookupItem(ctx, it, out)
}
