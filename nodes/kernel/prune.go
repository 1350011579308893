package kernel

import (
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	// maxNodes is the number of nodes above which unused ones are pruned. The kernel forgets a node
	// only when memory is short: after a crawl over a store of 140,000 entries, three nodes each,
	// nearly never. The limit suffices for every name of a session of 20,000 entries; a pruned name
	// costs one more lookup.
	maxNodes = 1 << 16
	// nodeShare is the part of the memory budget for each node, in bytes. A node takes up to 1 KiB
	// here, and as much in the kernel.
	nodeShare = 4 << 10
	// pruneRest is the time without new nodes after which all unused ones are pruned.
	pruneRest = time.Minute
	// maxMisses bounds the missing names that are recorded. The kernel caches them, though it asks
	// for them at each access, and keeps their directories: tools look for .git and the like in
	// every one. So it is told to forget them.
	maxMisses = 1 << 14
	// missBatch is the number of misses that are forgotten at once. The last freshMisses stay, as
	// their answers may not have arrived.
	missBatch, freshMisses = 512, 64
)

// inodeLimit bounds the inodes and the missing names in the kernel's cache.
type inodeLimit struct {
	limit int           // see maxNodes; this and rest do not change after the mount
	rest  time.Duration // see pruneRest
	room  atomic.Int64  // number of nodes to be added before Prune counts them
	full  chan struct{} // wakes Prune

	mu     sync.Mutex // guards misses
	misses []miss
}

// miss is a missing name in a directory.
type miss struct {
	dir  *fusefs.Inode
	name string
}

// init sets the limit, as a number of inodes, and the least time between two counts.
func (c *inodeLimit) init(limit int, rest time.Duration) {
	c.limit = limit
	c.rest = rest
	c.full = make(chan struct{}, 1)
	c.makeRoom(0)
}

// makeRoom sets room after a count of the nodes. If most are in use, a quarter of the limit may be
// added before the next count.
func (c *inodeLimit) makeRoom(nodes int) { c.room.Store(int64(max(c.limit-nodes, c.limit/4))) }

// wake wakes Prune.
func (c *inodeLimit) wake() {
	select {
	case c.full <- struct{}{}:
	default: // it is awake already
	}
}

// addMiss records a missing name.
func (c *inodeLimit) addMiss(dir *fusefs.Inode, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.misses) < maxMisses {
		c.misses = append(c.misses, miss{dir: dir, name: name})
	}
	if len(c.misses) >= missBatch+freshMisses {
		c.wake()
	}
}

// popMisses removes and returns all misses but the last ones.
func (c *inodeLimit) popMisses() []miss {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := max(len(c.misses)-freshMisses, 0)
	old := c.misses[:n]
	c.misses = append([]miss(nil), c.misses[n:]...)
	return old
}

// add counts an inode.
func (c *inodeLimit) add() {
	if c.room.Add(-1) < 0 {
		c.wake()
	}
}

// pruneBatch is the number of nodes in one notification, as many as the kernel handles at a time.
const pruneBatch = 512

// KeepNodes sets the limit of nodes, unless it is 0, and the time after the last new node at which
// unused ones are pruned. It must be called before the mount.
func (d *Door) KeepNodes(limit int, rest time.Duration) {
	if limit == 0 {
		limit = d.inodes.limit
	}
	d.inodes.init(limit, rest)
}

// Prune makes the kernel forget unused nodes when there are too many, and when none was added for a
// while, until stop is closed. It must run in its own goroutine, the only one that sends such
// notifications: the kernel takes locks for them that requests in progress may hold.
func (d *Door) Prune(stop <-chan struct{}) {
	c := &d.inodes
	rest := time.NewTicker(d.inodes.rest)
	defer rest.Stop()
	before := int64(c.limit)
	idle := true // not the current room: on one processor this may start late
	for {
		select {
		case <-c.full:
			storage.Guarded(func() {
				d.forgetMisses(stop)
				if c.room.Load() < 0 {
					d.pruneOnce(c.limit*3/4, stop)
				}
			})()
		case <-rest.C:
			room := c.room.Load()
			if room != before {
				before = room
				idle = false
			} else if !idle {
				storage.Guarded(func() { d.pruneOnce(0, stop) })()
				before = c.room.Load()
				idle = true
			}
		case <-stop:
			return
		}
	}
}

// forgetMisses makes the kernel forget missing names.
func (d *Door) forgetMisses(stop <-chan struct{}) {
	for _, m := range d.inodes.popMisses() {
		select {
		case <-stop:
			return
		default:
			if m.dir.GetChild(m.name) == nil { // otherwise it exists by now and may be in use
				_ = m.dir.NotifyEntry(m.name)
			}
		}
	}
}

// pruneOnce makes the kernel forget all unused nodes, if there are more than enough.
func (d *Door) pruneOnce(enough int, stop <-chan struct{}) {
	root := d.inode.EmbeddedInode()
	unused := below(nil, root)
	if len(unused) <= enough { // the kernel has forgotten some by itself
		d.inodes.makeRoom(len(unused))
		return
	}
	d.forgetMisses(stop)
	before := len(unused)
	forget := root.NotifyPrune
	for len(unused) > 0 {
		select {
		case <-stop:
			return
		default:
		}
		n := min(len(unused), pruneBatch)
		switch errno := forget(unused[:n]); errno {
		case 0:
		case syscall.ENOSYS: // before Linux 6.18
			forget = forgetNames
			continue
		default: // unmounting
			return
		}
		unused = unused[n:]
	}
	left := len(below(nil, root))
	d.inodes.makeRoom(left)
	d.root.View().Log.Debug("nodes were given back", "before", before, "left", left)
}

// below appends the prunable nodes below a directory, children before their directory, which is in
// use while the kernel has a name in it.
func below(unused []*fusefs.Inode, dir *fusefs.Inode) []*fusefs.Inode {
	for _, child := range dir.Children() {
		if child.IsDir() {
			unused = below(unused, child)
		}
		link, ok := nodeOf(child).(*nodes.LeafLink)
		if !ok || !link.Waits() {
			unused = append(unused, child)
		}
	}
	return unused
}

// forgetNames is NotifyPrune for older kernels, which can only forget names, whether in use or not.
// It skips directories: one may be the working directory of a process.
func forgetNames(unused []*fusefs.Inode) syscall.Errno {
	for _, n := range unused {
		name, parent := n.Parent()
		if parent != nil && !n.IsDir() {
			// ENOENT means that the kernel had forgotten the name.
			errno := parent.NotifyEntry(name)
			if errno != 0 && errno != syscall.ENOENT {
				return errno
			}
		}
	}
	return 0
}
