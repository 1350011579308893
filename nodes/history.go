package nodes

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage"
)

// HistoryDir is history/: the client's prompt history. Without one it is an empty directory with
// the attributes of SOURCE.
type HistoryDir struct {
	Directory
	source  storage.Files
	prompts history.History
}

// HistoryName is the directory of the prompt history of source.
func HistoryName(source storage.Files, prompts history.History) Name {
	return Name{"history", storage.KindDir, func(d *Directory) Node {
		return &HistoryDir{d.below("history"), source, prompts}
	}, nil}
}

var historyNames = fixedNames[*HistoryDir]{
	{"prompts.jsonl", storage.KindFile, func(d *HistoryDir) Node {
		return newPromptsFile(&d.Directory, d.prompts, "")
	}, nil},
	{"search", storage.KindDir, func(d *HistoryDir) Node {
		return &HistorySearchDir{d.below("search"), d.prompts}
	}, nil},
}

func (d *HistoryDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	return historyNames.find(ctx, d, it)
}

func (d *HistoryDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	if _, err := d.prompts.State(); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return historyNames.list(ctx, d), nil
}

func (d *HistoryDir) Stat(context.Context) (Attr, error) {
	state, err := d.prompts.State()
	st := state.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		st, err = d.source.Stat("")
	}
	if err != nil {
		return Attr{}, err
	}
	return d.view.dirAttr(st).private(), nil
}

// HistorySearchDir is history/search/: a lookup of a query finds the file of the matching prompts.
type HistorySearchDir struct {
	Directory
	prompts history.History
}

func (d *HistorySearchDir) Stat(context.Context) (Attr, error) {
	state, err := d.prompts.State()
	if err != nil {
		return Attr{}, err
	}
	return d.view.dirAttr(state.Stat()).private(), nil
}

func (d *HistorySearchDir) Noted() string { return "history/search" }

// Find makes the file of a query, whose size takes running it. A name that is not a query is
// EINVAL, with the reason in the root's last-error. A name with a leading dot, which programs look
// up in every directory (.git, .gitignore), is ENOENT.
func (d *HistorySearchDir) Find(_ context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	if strings.HasPrefix(it.Name, ".") {
		return Child{}, syscall.ENOENT
	}
	return Child{Kind: storage.KindFile, Make: func() Node {
		return newPromptsFile(&d.Directory, d.prompts, it.Name)
	}}, nil
}

// newPromptsFile returns history/prompts.jsonl, or history/search/<query> for the query match:
// prompts as JSON lines, newest first. The handle holds the content; the node keeps only its size.
func newPromptsFile(dir *Directory, prompts history.History, match string) *ContentFile {
	type knownSize struct {
		state history.State
		size  int64
	}
	var last atomic.Pointer[knownSize]
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		r, err := prompts.Render(ctx, match, hold)
		if err != nil {
			return content{}, err
		}
		c := textContent(r.Text, r.State.Stat())
		c.private = true
		if r.Settled {
			last.Store(&knownSize{r.State, c.size})
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
	return &ContentFile{node: dir.file(), render: render, measure: measure}
}
