package nodes

import (
	"context"
	"slices"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// ArchiveDir is archive/: SOURCE/archive/sessions as it is, with a directory beside each compressed session, and
// index.jsonl. Nothing in it can be changed.
type ArchiveDir struct {
	SourceDir
	index fixedNames[*View]
}

// NewArchiveDir returns the directory that shows the root of a storage. sessions are those of the same files uncompressed.
func NewArchiveDir(view *View, files storage.Files, sessions *sessioncore.Store) *ArchiveDir {
	return &ArchiveDir{*NewSourceDir(view, files, sessions), fixedNames[*View]{IndexName}}
}

// find finds index.jsonl, or what a SourceDir finds.
func (d *ArchiveDir) find(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	if it.name == IndexName.Name {
		return d.index.find(ctx, d.view, it)
	}
	return d.SourceDir.find(ctx, snap, it, out)
}

func (d *ArchiveDir) list(ctx context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	items, err := d.SourceDir.list(ctx, snap)
	if err != nil {
		return nil, err
	}
	items = slices.DeleteFunc(items, func(it item) bool { return it.name == IndexName.Name })
	items = append(items, d.index.list(ctx, d.view, &d.node)...)
	sortItems(items)
	return items, nil
}
