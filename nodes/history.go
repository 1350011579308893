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

func (d *HistoryDir) list() ([]item, error) {
	if _, err := d.prompts.State(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return []item{d.newItem(kindStatic, promptsName, syscall.S_IFREG), d.newItem(kindStatic, searchName, syscall.S_IFDIR)}, nil
}

func (d *HistoryDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.Lookup(ctx, it.name, out)
}
