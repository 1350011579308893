package nodes

import (
	"context"
	"fmt"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
)

// aboutSessions is the base of the directories in which something is found in all sessions, or in one.
type aboutSessions struct {
	directory
	session *sessioncore.Session // nil for all
}

// stat returns the state of what is searched: a session file, or the directory of all.
func (d *aboutSessions) stat(ctx context.Context) (storage.Stat, error) {
	if d.session != nil {
		return d.session.Probe(ctx)
	}
	return d.view.Sessions.Storage().Stat("")
}

func (d *aboutSessions) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := d.stat(ctx)
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	return nil
}

// SearchDir is search/, and that of a session: looking up a query finds the directory of its hits, and reads nothing. It
// lists nothing.
type SearchDir struct {
	aboutSessions
	listsNothing
}

// NewSearchDir returns the directory that searches all sessions.
func NewSearchDir(view *View) *SearchDir {
	return &SearchDir{aboutSessions: aboutSessions{directory: directory{node{view: view}}}}
}

func makeSearch(d *snapshotDir) fusefs.InodeEmbedder {
	return &SearchDir{aboutSessions: aboutSessions{directory{node{view: d.view}}, d.session}}
}

var _ = (fusefs.NodeLookuper)((*SearchDir)(nil))

// Lookup finds the directory of a query. A name that is none is EINVAL, with the reason in the root's last-error; one
// with a leading dot, which programs look for in every directory, is ENOENT.
func (d *SearchDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if strings.HasPrefix(name, ".") {
		return nil, syscall.ENOENT
	}
	query, view, err := d.parse(name)
	if err != nil {
		return nil, d.view.refuseLookup(layout.Search, name, d.path()+"/"+name, err)
	}
	d.view.found(layout.Search)
	id := stableAttr(d.StableAttr(), kindSearch, name, syscall.S_IFDIR)
	return d.enter(ctx, d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return newHitsDir(view, query, d.session, "../..")
	}), out)
}

// slashes undoes how a name has a slash, and what that looks like.
var slashes = strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%")

// parse returns the query of a name, and the view of what it is about.
func (d *SearchDir) parse(name string) (*search.Query, *View, error) {
	query, err := search.ParseQuery(slashes.Replace(name))
	if err != nil {
		return nil, nil, err
	}
	if d.session != nil {
		if query.Archive() {
			return nil, nil, fmt.Errorf("%w: in:archive is for the search of all sessions, in the root", search.ErrQuery)
		}
		return query, d.view, nil
	}
	view, err := d.view.Searched(query)
	return query, view, err
}

// Searched returns the view of the sessions that a query is about.
func (v *View) Searched(query *search.Query) (*View, error) {
	if !query.Archive() {
		return v, nil
	}
	if archive := v.Archive; archive != nil {
		if _, err := archive.Sessions.Storage().Stat(""); err == nil {
			return archive, nil
		}
	}
	return nil, fmt.Errorf("%w: there is no archive of sessions here that in:archive could search", search.ErrQuery)
}
