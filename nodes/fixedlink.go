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
	"sessionfs/sessioncore/storage"
)

// FixedLink is a link whose target follows from its place alone: in tree/ entry.json, which leads to the
// entry's file, or a child whose directory is in .deep; a branch in branches/; an entry in path/.
type FixedLink struct {
	node
	session *sessioncore.Session
	target  string
	time    time.Time // of the entry
}

func (l *FixedLink) fillAttr(out *fuse.Attr) error {
	st, err := l.session.Probe()
	if err != nil {
		return fmt.Errorf("the session of %s: %w", l.target, err)
	}
	fillLink(out, st, l.target)
	fillTimes(out, l.time, l.time)
	return nil
}

func (l *FixedLink) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*FixedLink)(nil))

// Getattr tells the length of the target.
func (l *FixedLink) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return l.getattr(l, out)
}

var _ = (fusefs.NodeReadlinker)((*FixedLink)(nil))

// Readlink returns the target.
func (l *FixedLink) Readlink(context.Context) ([]byte, syscall.Errno) { return []byte(l.target), 0 }

// enterFixedLink answers a lookup with a link of that identity; st is the session file's. In a session that
// was rewritten another target or time is another link to the kernel.
func (n *node) enterFixedLink(ctx context.Context, session *sessioncore.Session, id fusefs.StableAttr, name, target string, st storage.Stat, t time.Time, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	sum := fnv.New64a()
	_, _ = sum.Write(strconv.AppendInt([]byte(target), t.UnixMilli(), 10))
	id.Gen ^= sum.Sum64()
	child := n.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &FixedLink{node: node{view: n.view}, session: session, target: target, time: t}
	})
	fillLink(&out.Attr, st, target)
	fillTimes(&out.Attr, t, t)
	setTimeouts(out, cacheSecond)
	return child, 0
}
