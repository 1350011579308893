package nodes

import (
	"strings"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

const parentName = "parent"

// hasParent reports whether the session that this one was forked from is in the mount. An error counts as no, so that
// the rest of the directory can be listed.
func (d *SessionDir) hasParent() (bool, error) {
	_, err := d.parent()
	return err == nil, nil
}

// makeParent makes parent, the link to the session that this one was forked from.
func makeParent(d *SessionDir) fusefs.InodeEmbedder {
	return &SessionLink{Link{node: node{view: d.view}, find: d.parent}}
}

// parent finds the parent. The link has the owner and the times of its own session, whose header names the parent.
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
	from := strings.TrimPrefix(d.path(), layout.Sessions+"/")
	return target{path: layout.RelativeTarget(from, layout.SessionDir(parent.Name())), st: st}, nil
}
