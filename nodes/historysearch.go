package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/history"
)

// HistorySearchDir is history/search/: looking up a query finds the prompts that match it. It lists nothing.
type HistorySearchDir struct {
	directory
	listsNothing
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

var _ = (fusefs.NodeLookuper)((*HistorySearchDir)(nil))

// Lookup runs the query to find the size of its result. A name that is not a query is EINVAL, with the reason in the
// root's last-error. A name with a leading dot, which programs look for in every directory (.git, .gitignore), is
// never a query: it is ENOENT.
func (d *HistorySearchDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if strings.HasPrefix(name, ".") {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindSearch, name, syscall.S_IFREG)
	child := d.child(ctx, id, name, func() fusefs.InodeEmbedder { return newPromptsFile(d.view, d.prompts, name) })
	file := child.Operations().(*ContentFile)
	if err := file.fillAttr(ctx, &out.Attr); err != nil {
		return nil, d.view.refuseLookup(searchWhat, name, d.path()+"/"+name, err)
	}
	d.view.found(searchWhat)
	setTimeouts(out, file.cache())
	return child, 0
}

// searchWhat is the name of searches in last-error.
const searchWhat = "history/search"
