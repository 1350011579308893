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
	namesDir
	source  storage.Files
	prompts *history.History
}

// NewHistoryDir returns the directory that shows the prompt history of source.
func NewHistoryDir(view *View, source storage.Files, prompts *history.History) *HistoryDir {
	names := []Name{
		{Name: "prompts.jsonl", Mode: syscall.S_IFREG, Make: func() fusefs.InodeEmbedder { return newPromptsFile(view, prompts, "") }},
		{Name: "search", Mode: syscall.S_IFDIR, Make: func() fusefs.InodeEmbedder {
			return &HistorySearchDir{directory: directory{node{view: view}}, prompts: prompts}
		}},
	}
	return &HistoryDir{newNamesDir(view, names), source, prompts}
}

func (d *HistoryDir) fillAttr(_ context.Context, out *fuse.Attr) error {
	state, err := d.prompts.State()
	st := state.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		st, err = d.source.Stat("")
	}
	if err != nil {
		return err
	}
	d.fillPrivate(out, st, syscall.S_IFDIR, 0)
	return nil
}

func (d *HistoryDir) list(ctx context.Context) ([]item, error) {
	if _, err := d.prompts.State(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return d.namesDir.list(ctx)
}
