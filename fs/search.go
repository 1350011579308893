package fs

import (
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
