package nodes

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage"
)

const (
	promptsName = "prompts.jsonl"
	searchName  = "search"
)

// HistoryDir is history/: the client's prompt history. Where there is none it is an empty directory with the looks of
// SOURCE.
type HistoryDir struct {
	directory
	source  storage.Storage
	prompts *history.History
}

// NewHistoryDir returns the directory that shows the prompt history of source.
func NewHistoryDir(view *View, source storage.Storage, prompts *history.History) *HistoryDir {
	return &HistoryDir{directory: directory{node{view: view}}, source: source, prompts: prompts}
}

func (d *HistoryDir) fillAttr(out *fuse.Attr) error {
	state, err := d.prompts.State()
	st := state.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		st, err = d.source.Stat("")
	}
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	return nil
}

func (d *HistoryDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*HistoryDir)(nil))

// Getattr mirrors the database.
func (d *HistoryDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*HistoryDir)(nil))

// Lookup finds prompts.jsonl and search, where there is a database.
func (d *HistoryDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	var mode uint32
	var create func() fusefs.InodeEmbedder
	switch name {
	case promptsName:
		mode, create = syscall.S_IFREG, func() fusefs.InodeEmbedder { return newPromptsFile(d.view, d.prompts, "") }
	case searchName:
		mode, create = syscall.S_IFDIR, func() fusefs.InodeEmbedder {
			return &SearchDir{directory: directory{node{view: d.view}}, prompts: d.prompts}
		}
	default:
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindStatic, name, mode)
	return d.enter(d.child(ctx, id, name, create), out)
}

var _ = (fusefs.NodeOpendirHandler)((*HistoryDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *HistoryDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openListing(d)
}

func (d *HistoryDir) list() ([]item, func(), error) {
	if _, err := d.prompts.State(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	of := func(name string, mode uint32) item {
		id := stableAttr(d.StableAttr(), kindStatic, name, mode)
		return item{name: name, mode: id.Mode, ino: id.Ino}
	}
	return []item{of(promptsName, syscall.S_IFREG), of(searchName, syscall.S_IFDIR)}, nil, nil
}

func (d *HistoryDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.Lookup(ctx, it.name, out)
}
