package nodes

import (
	"context"
	"path"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// SessionLink is a link to the directory of a session, in by-id/, by-cwd/, recent/ and continue/, and
// parent. Which session that is is found out each time somebody asks. The target is relative, so it holds
// wherever the mount is.
type SessionLink struct{ Link }

func (l *SessionLink) cache() cacheRule { return cacheAttr }

// linkTarget leads to a session from up directories below the root. dir is the session's directory below
// sessions/.
func linkTarget(dir string, up int) string {
	return strings.Repeat("../", up) + path.Join(sessionsRoot, dir)
}

// enterSessionLink answers the lookup of a link.
func (n *node) enterSessionLink(ctx context.Context, name string, find findTarget, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return n.enter(n.sessionLink(ctx, name, find), out)
}

// lookUpLink is enterSessionLink for a name that a person made up: what is not found is noted as refused.
func (n *node) lookUpLink(ctx context.Context, what, name string, find findTarget, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	to, err := find()
	switch {
	case err != nil && name[0] == '.': // .git and the like
		return nil, n.view.fail("lookup", n.path(), err)
	case err != nil:
		return nil, n.view.refuseLookup(what, name, n.path()+"/"+name, err)
	}
	n.view.found(what)
	fillLink(&out.Attr, to)
	setTimeouts(out, cacheAttr)
	return n.sessionLink(ctx, name, find), 0
}

func (n *node) sessionLink(ctx context.Context, name string, find findTarget) *fusefs.Inode {
	id := stableAttr(n.StableAttr(), kindSessionLink, name, syscall.S_IFLNK)
	return n.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &SessionLink{Link{node: node{view: n.view}, find: find}}
	})
}

// sessionLinkItem is a link in a listing.
func (n *node) sessionLinkItem(name string) item {
	return n.newItem(kindSessionLink, name, syscall.S_IFLNK)
}

// noLookup answers READDIRPLUS for a link: no attributes. The kernel looks the name up when somebody wants
// them, and would do that also if it had them, since it may not remember the name.
func noLookup() (*fusefs.Inode, syscall.Errno) { return nil, syscall.ENOENT }
