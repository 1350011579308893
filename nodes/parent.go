package nodes

import (
	"strings"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
)

const parentName = "parent"

// hasParent reports whether the session that this one was forked from is here. Where that cannot be told,
// the rest of the directory is there all the same.
func (d *SessionDir) hasParent() (bool, error) {
	_, err := d.parent()
	return err == nil, nil
}

// makeParent makes parent, the link to the session that this one was forked from.
func makeParent(d *SessionDir) fusefs.InodeEmbedder {
	return &SessionLink{Link{node: node{view: d.view}, find: d.parent}}
}

// parent finds the parent. The link has the owner and the times of its own session, whose header says
// where it leads.
func (d *SessionDir) parent() (target, error) {
	if d.view.Listing == nil {
		return target{}, sessioncore.ErrNotFound
	}
	parent, err := d.view.Listing.Parent(d.session)
	if err != nil {
		return target{}, err
	}
	st, err := d.session.Probe()
	if err != nil {
		return target{}, err
	}
	from := strings.TrimPrefix(d.path(), sessionsRoot+"/")
	return target{path: relativeLink(from, strings.TrimSuffix(parent.Name(), sessionSuffix)), st: st}, nil
}

// relativeLink is the target of a link in the directory from that leads to another one below the same
// root.
func relativeLink(from, to string) string {
	here, there := strings.Split(from, "/"), strings.Split(to, "/")
	for len(here) > 0 && len(there) > 1 && here[0] == there[0] {
		here, there = here[1:], there[1:]
	}
	return strings.Repeat("../", len(here)) + strings.Join(there, "/")
}
