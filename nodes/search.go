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
)

// SearchDir is search/, and that of a session: looking up a query finds the directory of its hits, and reads nothing. It
// lists nothing.
type SearchDir struct{ aboutSessions }

// NewSearchDir returns the directory that searches all sessions.
func NewSearchDir(view *View) fusefs.InodeEmbedder { return &SearchDir{newAboutSessions(view, nil)} }

func makeSearch(d *SessionDir) fusefs.InodeEmbedder {
	return &SearchDir{newAboutSessions(d.view, d.session)}
}

func (d *SearchDir) noted() string { return layout.Search }

// find finds the directory of a query. A name that is none is EINVAL, with the reason in the root's last-error; one
// with a leading dot, which programs look for in every directory, is ENOENT.
func (d *SearchDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	if strings.HasPrefix(it.name, ".") {
		return child{}, syscall.ENOENT
	}
	query, view, err := d.parse(it.name)
	return child{kind: kindSearch, mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		return &HitsDir{newHits(view, query, d.session, "../../..")}
	}}, err
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
