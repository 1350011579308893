package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/history"
)

// HistorySearchDir is history/search/: looking up a query finds the prompts that match it. It lists nothing.
type HistorySearchDir struct {
	directory
	prompts *history.History
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
	return child{kind: kindSearch, mode: syscall.S_IFREG, make: func() fusefs.InodeEmbedder {
		return newPromptsFile(d.view, d.prompts, it.name)
	}}, nil
}
