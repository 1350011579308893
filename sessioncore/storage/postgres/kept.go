package postgres

import (
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/sessioncore/budget"
)

const (
	// maxInMemory is the size of the longest row that is kept in memory, and maxMemory bounds all
	// of them: a list reads the head of most rows once.
	maxInMemory, maxMemory = 2 << 20, 12 << 20
	// maxFiles bounds the files that rows are kept in. Each one is a descriptor.
	maxFiles = 512
)

// kept is the contents that are kept. The least recently used is evicted first.
type kept struct {
	texts budget.Room

	mu            sync.Mutex // guards the fields below
	memory, files *rowContents
}

// rowContents are contents by their last use.
type rowContents = simplelru.LRU[*rowContent, struct{}]

// newKept returns an empty cache of contents. Long ones are in files in dir.
func newKept(limit *budget.Budget, dir string) *kept {
	k := &kept{texts: budget.Room{
		Limit:  limit,
		Memory: limit.Kept().AtMost(maxMemory),
		Most:   maxInMemory,
		Dir:    dir,
	}}
	k.memory, _ = simplelru.NewLRU[*rowContent, struct{}](math.MaxInt, nil)
	k.files, _ = simplelru.NewLRU[*rowContent, struct{}](math.MaxInt, nil)
	limit.OnFull(k.evictIdle)
	return k
}

// use records that a content was read or has grown.
func (k *kept) use(c *rowContent, inFile bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if inFile {
		k.memory.Remove(c)
		k.files.Add(c, struct{}{})
	} else {
		k.files.Remove(c)
		k.memory.Add(c, struct{}{})
	}
	for k.files.Len() > maxFiles {
		evicted := k.evict(k.files)
		if !evicted {
			return
		}
	}
}

// reserve makes room in memory for a text that will have n bytes, and evicts others for it. Without
// room the text will be in a file.
func (k *kept) reserve(t *budget.Text, n int64) {
	for !t.Reserve(n) {
		isForFile := n > maxInMemory || t.InFile()
		if isForFile {
			return
		}
		k.mu.Lock()
		evicted := k.evict(k.memory)
		k.mu.Unlock()
		if !evicted {
			return
		}
	}
}

// evict evicts the least recently used of some contents, k.memory or k.files, that no goroutine works with. It
// returns false if there is none. Callers must hold k.mu.
func (k *kept) evict(contents *rowContents) bool {
	for range contents.Len() {
		oldest, _, _ := contents.RemoveOldest()
		evicted, moved := oldest.evict(contents == k.memory)
		if !evicted {
			contents.Add(oldest, struct{}{}) // as if it was just used, since a goroutine works with it
			continue
		}
		if moved {
			k.files.Add(oldest, struct{}{})
		}
		return true
	}
	return false
}

// evictIdle frees the memory that no goroutine works with, and files while they are too many.
func (k *kept) evictIdle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.evictAll(k.memory)
	for budget.FilesFull() {
		evicted := k.evict(k.files)
		if !evicted {
			return
		}
		k.evictAll(k.memory)
	}
}

// evictAll evicts some contents, k.memory or k.files, that no goroutine works with. Callers must hold k.mu.
func (k *kept) evictAll(contents *rowContents) {
	evicted := true
	for evicted {
		evicted = k.evict(contents)
	}
}

// close frees all.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.evictAll(k.memory)
	k.evictAll(k.files)
}
