package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/history"
)

// SearchDir is history/search/: looking up an FTS5 query finds the prompts that match it. It lists nothing.
type SearchDir struct {
	directory
	listsNothing
	prompts *history.History
}

func (d *SearchDir) fillAttr(out *fuse.Attr) error {
	state, err := d.prompts.State()
	if err != nil {
		return err
	}
	d.fillDir(out, state.Stat())
	return nil
}

var _ = (fusefs.NodeLookuper)((*SearchDir)(nil))

// Lookup runs the query, to tell the size of its answer; one that is no query is EINVAL, with the reason in the root's
// last-error. What begins with a dot cannot be one, but is what programs look for in every directory (.git,
// .gitignore): it is not there.
func (d *SearchDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if strings.HasPrefix(name, ".") {
		return nil, syscall.ENOENT
	}
	id := stableAttr(d.StableAttr(), kindSearch, name, syscall.S_IFREG)
	child := d.child(ctx, id, name, func() fusefs.InodeEmbedder { return newPromptsFile(d.view, d.prompts, name) })
	file := child.Operations().(*PromptsFile)
	if err := file.fillAttr(&out.Attr); err != nil {
		return nil, d.view.refuseLookup(searchWhat, name, d.path()+"/"+name, err)
	}
	d.view.found(searchWhat)
	setTimeouts(out, file.cache())
	return child, 0
}

// searchWhat is what last-error calls a search.
const searchWhat = "history/search"
