package postgres

import (
	"container/list"
	"sync"

	"sessionfs/sessioncore/budget"
)

const (
	// maxInMemory is how long a row is at most that is kept in memory.
	maxInMemory = 8 << 20
	// maxDisk bounds what is kept in files, each of which counts as maxInMemory at least. One that is in use may be larger.
	maxDisk = 1 << 30
)

// kept is the contents that are kept, and how much they take. What was used least recently is taken away first.
type kept struct {
	mu           sync.Mutex // guards the fields below
	hold         budget.Hold
	memory, disk int64     // bytes
	order        list.List // of *content; the first was used last
	of           map[*content]*keptContent
}

type keptContent struct {
	at     *list.Element
	inFile bool
	bytes  int64
}

// entry returns what is noted of a content, as the last one that was used. Callers must hold k.mu.
func (k *kept) entry(c *content) *keptContent {
	e := k.of[c]
	if e == nil {
		if k.of == nil {
			k.of = map[*content]*keptContent{}
		}
		e = &keptContent{at: k.order.PushFront(c)}
		k.of[c] = e
	}
	k.order.MoveToFront(e.at)
	return e
}

// use notes that a content was read.
func (k *kept) use(c *content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of[c] != nil {
		k.entry(c)
	}
}

// reserve makes room in memory for a content of n bytes in all, and takes others away for it. It returns false if the content
// belongs into a file.
func (k *kept) reserve(c *content, known text, n int64) bool {
	if known.file != nil || n > maxInMemory {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entry(c)
	for k.hold.Resize(k.memory+n-e.bytes) != nil {
		if !k.evict(c, false) {
			return false
		}
	}
	k.count(e, n, false)
	return true
}

// count notes how large a content is. Callers must hold k.mu.
func (k *kept) count(e *keptContent, n int64, inFile bool) {
	of := func(inFile bool) *int64 {
		if inFile {
			return &k.disk
		}
		return &k.memory
	}
	*of(e.inFile) -= e.bytes
	if e.inFile, e.bytes = inFile, n; inFile {
		e.bytes = max(n, maxInMemory)
	}
	*of(inFile) += e.bytes
	k.hold.Set(k.memory)
}

// set notes how large a content is, and takes others away for it.
func (k *kept) set(c *content, n int64, inFile bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count(k.entry(c), n, inFile)
	for k.disk > maxDisk && k.evict(c, true) {
	}
}

// evict takes away the content that was used least recently, of those in files or in memory, and that nobody works with.
// Callers must hold k.mu.
func (k *kept) evict(but *content, inFile bool) bool {
	for at := k.order.Back(); at != nil; at = at.Prev() {
		c := at.Value.(*content)
		if c != but && k.of[c].inFile == inFile && c.drop() {
			k.count(k.of[c], 0, false)
			k.order.Remove(at)
			delete(k.of, c)
			return true
		}
	}
	return false
}

// drop forgets what is kept, unless somebody works with it.
func (c *content) drop() bool {
	if !c.fetching.TryLock() {
		return false
	}
	defer c.fetching.Unlock()
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	if c.version != "" {
		c.dropped = c.version
	}
	if c.text.file != nil {
		_ = c.text.file.Close()
	}
	c.text, c.version, c.whole, c.slot = text{}, "", false, slotOf{}
	c.length.Store(0)
	return true
}

// close gives all back.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.evict(nil, true) {
	}
	k.hold.Close()
}
