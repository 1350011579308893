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

// HistoryDir is history/: the client's prompt history. If there is none it is an empty directory with the attributes
// of SOURCE.
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

// historyFiles are the names, in order: the one list that drives Lookup and listing.
var historyFiles = []struct {
	name string
	mode uint32 // file type bits
	make func(*HistoryDir) fusefs.InodeEmbedder
}{
	{"prompts.jsonl", syscall.S_IFREG, func(d *HistoryDir) fusefs.InodeEmbedder { return newPromptsFile(d.view, d.prompts, "") }},
	{"search", syscall.S_IFDIR, func(d *HistoryDir) fusefs.InodeEmbedder {
		return &SearchDir{directory: directory{node{view: d.view}}, prompts: d.prompts}
	}},
}

var _ = (fusefs.NodeLookuper)((*HistoryDir)(nil))

// Lookup finds a name, if there is a database.
func (d *HistoryDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	for _, f := range historyFiles {
		if f.name == name {
			id := stableAttr(d.StableAttr(), kindStatic, name, f.mode)
			return d.enter(d.child(ctx, id, name, func() fusefs.InodeEmbedder { return f.make(d) }), out)
		}
	}
	return nil, syscall.ENOENT
}

func (d *HistoryDir) list() ([]item, error) {
	if _, err := d.prompts.State(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	items := make([]item, len(historyFiles))
	for i, f := range historyFiles {
		items[i] = d.newItem(kindStatic, f.name, f.mode)
	}
	return items, nil
}

func (d *HistoryDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.Lookup(ctx, it.name, out)
}
