package nodes

import (
	"context"
	"sync/atomic"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
)

// maxNodes is how many nodes may exist before unused ones are pruned. A node takes some 600
// bytes here and twice that in the kernel, which forgets it only when memory is short: after a crawl over a store of
// 140,000 entries, three nodes each, nearly never. The limit is enough for every name of a session of 20,000
// entries; a pruned name costs one more lookup.
const maxNodes = 1 << 16

// crowd counts nodes.
type crowd struct {
	limit int           // maxNodes; does not change after the mount
	room  atomic.Int64  // how many may be added before Prune counts them
	full  chan struct{} // wakes Prune
}

func (c *crowd) init(limit int) {
	c.limit, c.full = limit, make(chan struct{}, 1)
	c.makeRoom(0)
}

// makeRoom sets room after a count of the nodes. If most are in use, a quarter of the limit may be added before the next
// count.
func (c *crowd) makeRoom(nodes int) { c.room.Store(int64(max(c.limit-nodes, c.limit/4))) }

var _ = (fusefs.NodeOnAdder)((*node)(nil))

// OnAdd counts the node.
func (n *node) OnAdd(context.Context) {
	v := n.view
	if v.Archived() {
		v = v.Live
	}
	if c := &v.crowd; c.room.Add(-1) < 0 {
		select {
		case c.full <- struct{}{}:
		default: // Prune is woken already
		}
	}
}
