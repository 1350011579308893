package fs

import (
	"context"

	"sessionfs/nodes"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
)

// newSearcher returns what searches the sessions of a view, which are below tree in the mount.
func newSearcher(view *nodes.View, files storage.Files, tree string) *search.Searcher {
	s := search.Sessions{Files: files, Tree: tree, Memory: view.Memory, Limit: search.DefaultLimit}
	return search.New(s)
}

// Search calls each with what a query finds in each session, those that were modified last first, as soon as it is known:
// all hits of the session, the newest first. It ends with an error of each.
func (u *Unmounted) Search(ctx context.Context, query *search.Query, each func(*search.Found) error) error {
	view, err := u.tree.view.Searched(query)
	if err != nil {
		return err
	}
	return eachFound(ctx, view, query, each)
}

// Touched is Search for what was done with a file, or below a directory.
func (u *Unmounted) Touched(ctx context.Context, touched *search.Touched, each func(*search.Found) error) error {
	return eachFound(ctx, u.tree.view, touched, each)
}

func eachFound(ctx context.Context, view *nodes.View, m search.Matcher, each func(*search.Found) error) error {
	all := view.Search.Sessions
	all.Limit = 0
	return search.New(all).Each(ctx, m, each)
}
