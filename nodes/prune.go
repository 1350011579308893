package nodes

import (
	"context"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore/storage"
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

// pruneBatch is how many nodes one notification names; the kernel too handles that many at a time.
const pruneBatch = 512

// KeepNodes sets how many nodes may exist. It must be called before the mount.
func (d *RootDir) KeepNodes(limit int) { d.view.crowd.init(limit) }

// Prune makes the kernel forget unused nodes whenever there are too many, until
// stop is closed. It must run in its own goroutine, the only one that sends such notifications: the kernel takes
// locks for them that may be held by requests which wait for the server.
func (d *RootDir) Prune(stop <-chan struct{}) {
	for {
		select {
		case <-d.view.crowd.full:
			storage.Guarded(func() { d.pruneOnce(stop) })()
		case <-stop:
			return
		}
	}
}

func (d *RootDir) pruneOnce(stop <-chan struct{}) {
	nodes := below(nil, &d.Inode)
	if len(nodes) <= d.view.crowd.limit*3/4 { // the kernel has forgotten some by itself
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

// below appends the nodes below a directory that may be pruned, the nodes in a directory before the directory itself,
// which is in use while the kernel remembers a name in it.
func below(nodes []*fusefs.Inode, dir *fusefs.Inode) []*fusefs.Inode {
	for _, child := range dir.Children() {
		if child.IsDir() {
			nodes = below(nodes, child)
		}
		if k, ok := child.Operations().(interface{ kept() bool }); !ok || !k.kept() {
			nodes = append(nodes, child)
		}
	}
	return nodes
}

// forgetNodes makes the kernel forget those nodes that are not in use.
func (d *RootDir) forgetNodes(nodes []*fusefs.Inode) syscall.Errno { return d.NotifyPrune(nodes) }

// forgetNames is forgetNodes for older kernels, which can forget names only, whether in use or not. So it skips
// directories: one may be the working directory of a process.
func (d *RootDir) forgetNames(nodes []*fusefs.Inode) syscall.Errno {
	for _, n := range nodes {
		if name, parent := n.Parent(); parent != nil && !n.IsDir() {
			// ENOENT means that it has forgotten the name already.
			if errno := parent.NotifyEntry(name); errno != 0 && errno != syscall.ENOENT {
				return errno
			}
		}
	}
	return 0
}
