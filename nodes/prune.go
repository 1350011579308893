package nodes

import (
	"context"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
)

// maxNodes is how many nodes may be there before those that nobody uses are given back. A node takes some 600
// bytes here and twice that in the kernel, which forgets it only when memory is short: after a crawl over a store of
// 140,000 entries, three nodes each, nearly never. So many are enough for every name of a session of 20,000
// entries; a name that was given back costs one lookup more.
const maxNodes = 1 << 16

// pruneBatch is how many nodes are named to the kernel at once; it takes as many at a time itself.
const pruneBatch = 512

// crowd counts nodes.
type crowd struct {
	limit int           // maxNodes; does not change after the mount
	room  atomic.Int64  // how many may come before somebody looks whether there are too many
	full  chan struct{} // tells that somebody
}

func (c *crowd) init(limit int) {
	c.limit, c.full = limit, make(chan struct{}, 1)
	c.makeRoom(0)
}

// makeRoom says how many nodes there are. Where most are in use, some more may come before the next look.
func (c *crowd) makeRoom(nodes int) { c.room.Store(int64(max(c.limit-nodes, c.limit/4))) }

var _ = (fusefs.NodeOnAdder)((*node)(nil))

// OnAdd counts the node.
func (n *node) OnAdd(context.Context) {
	if c := &n.view.crowd; c.room.Add(-1) < 0 {
		select {
		case c.full <- struct{}{}:
		default: // it is told already
		}
	}
}

// KeepNodes sets how many nodes may be there; before the mount.
func (d *RootDir) KeepNodes(limit int) { d.view.crowd.init(limit) }

// Prune gives back to the kernel what it remembers and nobody uses, whenever there are too many nodes, until
// stop is closed. It is the one that sends such notifications, and a goroutine of its own: the kernel takes
// locks for them that requests which wait for us may hold.
func (d *RootDir) Prune(stop <-chan struct{}) {
	for {
		select {
		case <-d.view.crowd.full:
			d.pruneOnce(stop)
		case <-stop:
			return
		}
	}
}

func (d *RootDir) pruneOnce(stop <-chan struct{}) {
	defer func() {
		if r := recover(); r != nil {
			d.view.Log.Error("a bug: giving nodes back panicked", "panic", r, "stack", string(debug.Stack()))
		}
	}()
	nodes := below(nil, &d.Inode)
	if len(nodes) <= d.view.crowd.limit*3/4 { // the kernel forgot some by itself meanwhile
		d.view.crowd.makeRoom(len(nodes))
		return
	}
	before := len(nodes)
	forget := d.forgetNodes
	for len(nodes) > 0 {
		select {
		case <-stop:
			return
		default:
		}
		n := min(len(nodes), pruneBatch)
		switch errno := forget(nodes[:n]); errno {
		case 0:
		case syscall.ENOSYS: // before Linux 6.18
			forget = d.forgetNames
			continue
		default: // it is being unmounted
			return
		}
		nodes = nodes[n:]
	}
	left := len(below(nil, &d.Inode))
	d.view.crowd.makeRoom(left)
	d.view.Log.Debug("nodes were given back", "before", before, "left", left)
}

// below appends the nodes below a directory that the kernel may give back, what is in a directory before it:
// a directory is in use while the kernel remembers a name in it.
func below(nodes []*fusefs.Inode, dir *fusefs.Inode) []*fusefs.Inode {
	for _, child := range dir.Children() {
		if child.IsDir() {
			nodes = below(nodes, child)
		}
		if _, waits := child.Operations().(*PendingLink); !waits { // somebody is about to rename it
			nodes = append(nodes, child)
		}
	}
	return nodes
}

// forgetNodes has the kernel forget those nodes that are not in use.
func (d *RootDir) forgetNodes(nodes []*fusefs.Inode) syscall.Errno { return d.NotifyPrune(nodes) }

// forgetNames does what older kernels can: they forget names, in use or not. So directories stay: one may be
// somebody's working directory.
func (d *RootDir) forgetNames(nodes []*fusefs.Inode) syscall.Errno {
	for _, n := range nodes {
		if name, parent := n.Parent(); parent != nil && !n.IsDir() {
			// ENOENT: it forgot already.
			if errno := parent.NotifyEntry(name); errno != 0 && errno != syscall.ENOENT {
				return errno
			}
		}
	}
	return 0
}
