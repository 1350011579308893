package nodes

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage"
)

// HistoryDir is history/: the client's prompt history. If there is none it is an empty directory with the attributes
// of SOURCE.
type HistoryDir struct {
	directory
	source  storage.Files
	prompts history.History
}

// HistoryName is the directory that shows the prompt history of source.
func HistoryName(source storage.Files, prompts history.History) Name {
	return Name{"history", syscall.S_IFDIR, func(view *View) fusefs.InodeEmbedder {
		return &HistoryDir{newDirectory(view), source, prompts}
	}, nil}
}

var historyNames = fixedNames[*HistoryDir]{
	{"prompts.jsonl", syscall.S_IFREG, func(d *HistoryDir) fusefs.InodeEmbedder { return newPromptsFile(d.view, d.prompts, "") }, nil},
	{"search", syscall.S_IFDIR, func(d *HistoryDir) fusefs.InodeEmbedder { return &HistorySearchDir{newDirectory(d.view), d.prompts} }, nil},
}

func (d *HistoryDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return historyNames.find(ctx, d, it)
}

func (d *HistoryDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	if _, err := d.prompts.State(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return historyNames.list(ctx, d, &d.node), nil
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

// HistorySearchDir is history/search/: looking up a query finds the prompts that match it. It lists nothing.
type HistorySearchDir struct {
	directory
	prompts history.History
}

func (d *HistorySearchDir) fillAttr(_ context.Context, out *fuse.Attr) error {
	state, err := d.prompts.State()
	if err != nil {
		return err
	}
	d.fillPrivate(out, state.Stat(), syscall.S_IFDIR, 0)
	return nil
}

func (d *HistorySearchDir) noted() string { return "history/search" }

// find makes the file of a query, whose size takes running it. A name that is not a query is EINVAL, with the reason in
// the root's last-error. A name with a leading dot, which programs look for in every directory (.git, .gitignore), is
// never a query: it is ENOENT.
func (d *HistorySearchDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	if strings.HasPrefix(it.name, ".") {
		return child{}, syscall.ENOENT
	}
	return child{mode: syscall.S_IFREG, make: func() fusefs.InodeEmbedder {
		return newPromptsFile(d.view, d.prompts, it.name)
	}}, nil
}

// newPromptsFile returns history/prompts.jsonl, or history/search/<query> where match is the query: prompts as JSON
// lines, newest first. The content is held by the handle; the node keeps only its size.
func newPromptsFile(view *View, prompts history.History, match string) *ContentFile {
	type known struct {
		state history.State
		size  int64
	}
	var last atomic.Pointer[known]
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		shown, err := prompts.Render(ctx, match, hold)
		if err != nil {
			return content{}, err
		}
		c := textContent(shown.Text, shown.State.Stat())
		c.private = true
		if shown.Settled {
			last.Store(&known{shown.State, c.size})
		}
		return c, nil
	}
	measure := func(ctx context.Context, hold *budget.Hold) (content, error) {
		state, err := prompts.State()
		if err != nil {
			return content{}, err
		}
		if k := last.Load(); k != nil && k.state == state {
			return content{size: k.size, stat: state.Stat(), private: true}, nil
		}
		return render(ctx, hold)
	}
	return &ContentFile{node: node{view: view}, render: render, measure: measure}
}
