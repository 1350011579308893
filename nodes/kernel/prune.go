package kernel

import (
	"cmp"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	// maxNodes is how many nodes may exist before unused ones are pruned. The kernel forgets a node
	// only when memory is short: after a crawl over a store of 140,000 entries, three nodes each,
	// nearly never. The limit is enough for every name of a session of 20,000 entries; a pruned
	// name costs one more lookup.
	maxNodes = 1 << 16
	// nodeShare is how much of the memory of the process there must be for each node that may
	// exist. One takes up to 1 KiB here, and as much in the kernel.
	nodeShare = 4 << 10
	// atRest is how long no node must have been added before unused ones are pruned, however few
	// there are.
	atRest = time.Minute
	// maxMisses is how many names that are not there are remembered. The kernel keeps them, though
	// it asks for them again, and keeps the directory with them: tools look for .git and the like
	// in every one. So each is taken from it.
	maxMisses = 1 << 14
	// missBatch is how many of them are taken from it at once, and freshMisses how many of the last
	// ones are not: the answer may not be there yet.
	missBatch, freshMisses = 512, 64
)

// inodeLimit bounds how many inodes and names that are not there the kernel remembers.
type inodeLimit struct {
	limit int           // see maxNodes; this and rest do not change after the mount
	rest  time.Duration // see atRest
	room  atomic.Int64  // how many may be added before Prune counts them
	full  chan struct{} // wakes Prune

	mu     sync.Mutex // guards misses
	misses []miss
}

// miss is a name that was looked for in a directory and is not there.
type miss struct {
	dir  *fusefs.Inode
	name string
}

func (c *inodeLimit) init(limit int, rest time.Duration) {
	c.limit, c.rest, c.full = limit, rest, make(chan struct{}, 1)
	c.makeRoom(0)
}

// makeRoom sets room after a count of the nodes. If most are in use, a quarter of the limit may be
// added before the next count.
func (c *inodeLimit) makeRoom(nodes int) { c.room.Store(int64(max(c.limit-nodes, c.limit/4))) }

// wake wakes Prune.
func (c *inodeLimit) wake() {
	select {
	case c.full <- struct{}{}:
	default: // it is woken already
	}
}

// missed notes a name that is not there.
func (c *inodeLimit) missed(dir *fusefs.Inode, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.misses) < maxMisses {
		c.misses = append(c.misses, miss{dir, name})
	}
	if len(c.misses) >= missBatch+freshMisses {
		c.wake()
	}
}

// takeMisses returns all misses but the last ones.
func (c *inodeLimit) takeMisses() []miss {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := max(len(c.misses)-freshMisses, 0)
	taken := c.misses[:n]
	c.misses = append([]miss(nil), c.misses[n:]...)
	return taken
}

// added counts an inode.
func (c *inodeLimit) added() {
	if c.room.Add(-1) < 0 {
		c.wake()
	}
}

// pruneBatch is how many nodes one notification names; the kernel too handles that many at a time.
const pruneBatch = 512

// KeepNodes sets how many nodes may exist, where limit is not 0, and how long after the last one
// was added those that are not in use are given back. It must be called before the mount.
func (d *Door) KeepNodes(limit int, rest time.Duration) {
	d.inodes.init(cmp.Or(limit, d.inodes.limit), rest)
}

// Prune makes the kernel forget unused nodes whenever there are too many, and when none was added
// for a while, until stop is closed. It must run in its own goroutine, the only one that sends such
// notifications: the kernel takes locks for them that may be held by requests which wait for the
// server.
func (d *Door) Prune(stop <-chan struct{}) {
	c, rest := &d.inodes, time.NewTicker(d.inodes.rest)
	defer rest.Stop()
	before, idle := int64(c.limit), true // and not what it is now: on one processor this may start after the first look
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
			if room := c.room.Load(); room != before {
				before, idle = room, false
			} else if !idle {
				storage.Guarded(func() { d.pruneOnce(0, stop) })()
				before, idle = c.room.Load(), true
			}
		case <-stop:
			return
		}
	}
}

// forgetMisses makes the kernel forget names that are not there.
func (d *Door) forgetMisses(stop <-chan struct{}) {
	for _, m := range d.inodes.takeMisses() {
		select {
		case <-stop:
			return
		default:
			if m.dir.GetChild(m.name) == nil { // else it is there by now, and somebody may work in it
				m.dir.NotifyEntry(m.name)
			}
		}
	}
}

// pruneOnce makes the kernel forget all nodes that are not in use, if there are more than enough of
// them.
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
		default: // it is being unmounted
			return
		}
		unused = unused[n:]
	}
	left := len(below(nil, root))
	d.inodes.makeRoom(left)
	d.root.View().Log.Debug("nodes were given back", "before", before, "left", left)
}

// below appends the nodes below a directory that may be pruned, the nodes in a directory before the
// directory itself, which is in use while the kernel remembers a name in it.
func below(unused []*fusefs.Inode, dir *fusefs.Inode) []*fusefs.Inode {
	for _, child := range dir.Children() {
		if child.IsDir() {
			unused = below(unused, child)
		}
		if link, ok := nodeOf(child).(*nodes.LeafLink); !ok || !link.Waits() {
			unused = append(unused, child)
		}
	}
	return unused
}

// forgetNames is NotifyPrune for older kernels, which can forget names only, whether in use or not.
// So it skips directories: one may be the working directory of a process.
func forgetNames(unused []*fusefs.Inode) syscall.Errno {
	for _, n := range unused {
		if name, parent := n.Parent(); parent != nil && !n.IsDir() {
			// ENOENT means that it has forgotten the name already.
			if errno := parent.NotifyEntry(name); errno != 0 && errno != syscall.ENOENT {
				return errno
			}
		}
	}
	return 0
}
