package gzip

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// maxInMemory is how much of one file is kept in memory; more goes to a temporary file. Most sessions are smaller.
	maxInMemory = 4 << 20
	// maxMemory and maxDisk are for all files together, and maxFiles is how many temporary files there are. One file that
	// is in use may be larger than maxDisk. In memory it is a memoryShare-th of the budget at most.
	maxMemory   = 12 << 20
	memoryShare = 8
	maxDisk     = 1 << 30
	maxFiles    = 32
	// maxContents is how many files are kept unpacked.
	maxContents = 256
	// inUse is how long what an object may be reading is not taken away. Two readers of large files would otherwise have
	// each other's unpacked again and again.
	inUse = 2 * time.Second
	// keepFor is how long what was unpacked is kept after it was used last.
	keepFor = 5 * time.Minute
)

// user is whose share of the budget is used: nobody's, as the files are kept for all.
const user = budget.Everybody - 1

// cache holds what was unpacked, within limits.
type cache struct {
	temporary string            // directory of temporary files
	limitOf   func(int64) int64 // limitOf, but in tests
	maxMemory int64             // maxMemory, or less in a small budget
	inMemory  int64             // maxInMemory, but in tests

	mu       sync.Mutex // guards the fields below
	contents map[storage.Token]*content
	memory   int64 // bytes of all contents in memory
	disk     int64 // bytes in temporary files
	files    int
	hold     budget.Hold // memory
	sweeping *time.Timer // nil if nothing is kept
	closed   bool
}

func newCache(limit *budget.Budget, temporary string) *cache {
	k := &cache{temporary: temporary, limitOf: limitOf, maxMemory: maxMemory, inMemory: maxInMemory, contents: map[storage.Token]*content{}, hold: limit.For(user)}
	if limit != nil {
		k.maxMemory = min(maxMemory, limit.Limit()/memoryShare)
	}
	return k
}

// open returns the content of a compressed file in a state, for one more object. It keeps or closes obj.
func (k *cache) open(token storage.Token, obj storage.Object) *content {
	k.mu.Lock()
	c := k.contents[token]
	if c == nil {
		c = &content{cache: k, token: token, limit: k.limitOf(token.Size)}
		k.contents[token] = c
	}
	c.refs++
	if c.obj == nil {
		c.obj, obj = obj, nil
	}
	k.mu.Unlock()
	if obj != nil {
		_ = obj.Close()
	}
	return c
}

// add appends to what was unpacked of a file. Callers must hold c.mu.
func (k *cache) add(c *content, b []byte) error {
	d := &c.data
	if d.file == nil && d.size+int64(len(b)) <= k.inMemory && k.takeMemory(c, int64(len(b))) {
		d.mem = append(d.mem, b...)
		d.size += int64(len(b))
		return nil
	}
	if d.file == nil {
		if err := d.toFile(k.temporary); err != nil {
			return err
		}
		k.count(-d.size, d.size, 1)
	}
	k.count(0, int64(len(b)), 0)
	k.makeRoom(c)
	if err := d.write(b); err != nil {
		k.count(0, -int64(len(b)), 0)
		return err
	}
	return nil
}

// takeMemory counts n more bytes in memory, and reports whether there is room.
func (k *cache) takeMemory(c *content, n int64) bool {
	k.count(n, 0, 0)
	k.makeRoom(c)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.memory > k.maxMemory || k.hold.Resize(k.memory) != nil {
		k.memory -= n
		return false
	}
	return true
}

// count adds to what is kept.
func (k *cache) count(memory, disk int64, files int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.memory += memory
	k.disk += disk
	k.files += files
	if memory < 0 {
		k.hold.Set(k.memory)
	}
	if k.sweeping == nil && !k.closed && k.memory+k.disk > 0 {
		k.sweeping = time.AfterFunc(keepFor, k.sweep)
	}
}

// clear gives back what was unpacked of a file. Callers must hold c.mu.
func (k *cache) clear(c *content) {
	d := c.data
	c.data = kept{}
	if d.file == nil {
		k.count(-d.size, 0, 0)
		return
	}
	_ = d.file.Close()
	k.count(0, -d.size, -1)
}

// makeRoom takes away what was used least recently, until the rest is within the limits. It leaves except, what is being
// unpacked, and what may be in use.
func (k *cache) makeRoom(except *content) {
	if !k.isFull() {
		return
	}
	recently := time.Now().Add(-inUse).UnixNano()
	for _, c := range k.byUse(func(c *content) bool { return c != except && (c.refs == 0 || c.lastUsed.Load() < recently) }) {
		if !k.isFull() {
			return
		}
		k.take(c)
	}
}

func (k *cache) isFull() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.memory > k.maxMemory || k.disk > maxDisk || k.files > maxFiles || len(k.contents) > maxContents
}

// byUse returns the contents that want selects, the one that was not used for longest first.
func (k *cache) byUse(want func(*content) bool) (found []*content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.contents {
		if want(c) {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *content) int { return cmp.Compare(a.lastUsed.Load(), b.lastUsed.Load()) })
	return found
}

// take takes away what was unpacked of a file, unless somebody reads it at this moment.
func (k *cache) take(c *content) {
	if !c.mu.TryLock() {
		return
	}
	c.drop()
	c.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if c.refs == 0 && k.contents[c.token] == c {
		delete(k.contents, c.token)
	}
}

// sweep takes away what was not used for long.
func (k *cache) sweep() {
	old := time.Now().Add(-keepFor).UnixNano()
	for _, c := range k.byUse(func(c *content) bool { return c.lastUsed.Load() < old }) {
		k.take(c)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sweeping = nil
	if !k.closed && k.memory+k.disk > 0 {
		k.sweeping = time.AfterFunc(keepFor/4, k.sweep)
	}
}

// close takes away everything.
func (k *cache) close() {
	k.mu.Lock()
	k.closed = true
	if k.sweeping != nil {
		k.sweeping.Stop()
	}
	k.mu.Unlock()
	for _, c := range k.byUse(func(*content) bool { return true }) {
		c.mu.Lock()
		c.drop()
		c.mu.Unlock()
	}
}
