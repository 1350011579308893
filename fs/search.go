package fs

import (
	"context"

	"sessionfs/nodes"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
)

// newSearcher returns what searches the sessions of a view, which are below tree in the mount.
func newSearcher(view *nodes.View, files storage.Storage, tree string) *search.Searcher {
	s := search.Sessions{Files: files, Tree: tree, Memory: view.Memory, Limit: search.DefaultLimit}
	if view.Access != nil {
		s.Guard = view.Access.Guard
	}
	return search.New(s)
}

// Search calls each with what a query finds in each session, those that were modified last first, as soon as it is known:
// all hits of the session, the newest first. It ends with an error of each.
func (u *Unmounted) Search(ctx context.Context, query *search.Query, each func(*search.Found) error) error {
	view, err := u.tree.view.Searched(query)
	if err != nil {
		return err
	}
	all := view.Search.Sessions
	all.Limit = 0
	return search.New(all).Each(ctx, query, each)
}
