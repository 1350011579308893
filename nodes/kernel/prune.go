package kernel

import (
	"slices"
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

// init sets the limit, as a number of inodes, and the time without new nodes after which unused ones are pruned.
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

// popMisses removes and returns all misses but the last freshMisses.
func (c *inodeLimit) popMisses() []miss {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := max(len(c.misses)-freshMisses, 0)
	old := c.misses[:n]
	c.misses = slices.Clone(c.misses[n:]) // so that the memory of the old ones is freed
	return old
}

// add counts an inode, and wakes Prune if there is no room for it.
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
	rest := time.NewTicker(c.rest)
	defer rest.Stop()
	pruneFull := storage.Guarded(func() { d.pruneFull(stop) })
	pruneUnused := storage.Guarded(func() { d.pruneOnce(0, stop) })
	lastRoom := int64(c.limit) // not the current room, which may be less: on one processor this may start late
	isPruned := true           // there was no new node since the last pruning
	for {
		select {
		case <-c.full:
			pruneFull()
		case <-rest.C:
			room := c.room.Load()
			hasNew := room != lastRoom
			if !hasNew && !isPruned {
				pruneUnused()
				room = c.room.Load()
			}
			isPruned = !hasNew
			lastRoom = room
		case <-stop:
			return
		}
	}
}

// pruneFull makes the kernel forget missing names, and unused nodes if there are too many.
func (d *Door) pruneFull(stop <-chan struct{}) {
	c := &d.inodes
	d.forgetMisses(stop)
	if c.room.Load() < 0 {
		enough := c.limit * 3 / 4 // with fewer the kernel has made room by itself
		d.pruneOnce(enough, stop)
	}
}

// forgetMisses makes the kernel forget the recorded missing names but the last ones, until stop is closed.
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

// pruneOnce makes the kernel forget all unused nodes, if there are more nodes than enough, and makes room for
// as many as there are no longer. It ends early, and makes no room, if stop is closed or the mount ends.
func (d *Door) pruneOnce(enough int, stop <-chan struct{}) {
	root := d.inode.EmbeddedInode()
	all := below(nil, root)
	if len(all) <= enough { // the kernel has forgotten some by itself
		d.inodes.makeRoom(len(all))
		return
	}
	d.forgetMisses(stop)
	forget := root.NotifyPrune
	for batch := range slices.Chunk(all, pruneBatch) {
		select {
		case <-stop:
			return
		default:
		}
		errno := forget(batch)
		if errno == syscall.ENOSYS { // before Linux 6.18
			forget = forgetNames
			errno = forget(batch)
		}
		if errno != 0 { // unmounting
			return
		}
	}
	left := len(below(nil, root))
	d.inodes.makeRoom(left)
	d.root.View().Log.Debug("nodes were given back", "before", len(all), "left", left)
}

// below appends the prunable nodes below a directory to found, children before their directory, which is in
// use while the kernel has a name in it. A link that waits to be renamed to leaf must be kept.
func below(found []*fusefs.Inode, dir *fusefs.Inode) []*fusefs.Inode {
	for _, child := range dir.Children() {
		if child.IsDir() {
			found = below(found, child)
		}
		link, isLeaf := nodeOf(child).(*nodes.LeafLink)
		if !isLeaf || !link.Waits() {
			found = append(found, child)
		}
	}
	return found
}

// forgetNames is NotifyPrune for older kernels, which can only forget names, whether in use or not.
// It skips directories: one may be the working directory of a process.
func forgetNames(unused []*fusefs.Inode) syscall.Errno {
	for _, n := range unused {
		name, parent := n.Parent()
		if parent == nil || n.IsDir() {
			continue
		}
		errno := parent.NotifyEntry(name)
		wasForgotten := errno == syscall.ENOENT // before, by the kernel itself
		if errno != 0 && !wasForgotten {
			return errno
		}
	}
	return 0
}
