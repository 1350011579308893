package nodes

import (
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// FixedLink is a link whose target does not change while the session only grows: in tree/ entry.json, which leads to
// the entry's file, or a child whose directory is in .deep; a branch in branches/; an entry in path/.
type FixedLink struct {
	node
	session *sessioncore.Session
	target  string
	time    time.Time // of the entry
}

func (l *FixedLink) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := l.session.Probe(ctx)
	if err != nil {
		return fmt.Errorf("the session of %s: %w", l.target, err)
	}
	fillLink(out, target{l.target, st, l.time})
	return nil
}

func (l *FixedLink) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeReadlinker)((*FixedLink)(nil))

// Readlink returns the target.
func (l *FixedLink) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	return []byte(l.target), 0
}

// enterFixedLink answers a lookup with a link of that identity. After a rewrite of the session, a link with another
// target or time is another node.
func (n *node) enterFixedLink(ctx context.Context, session *sessioncore.Session, id fusefs.StableAttr, name string, to target, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(to.path), to.time.UnixMilli(), 10))
	id.Gen ^= sum.Sum64()
	child := n.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &FixedLink{node: node{view: n.view}, session: session, target: to.path, time: to.time}
	})
	fillLink(&out.Attr, to)
	setTimeouts(out, cacheSecond)
	return child, 0
}
