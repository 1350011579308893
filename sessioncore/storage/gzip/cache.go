package gzip

import (
	"sync"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

const (
	// maxInMemory is how much of one file is kept in memory; more goes to a temporary file. Most sessions are smaller.
	maxInMemory = 4 << 20
	// maxMemory, maxDisk and maxFiles are for all files together. One file that is in use may be larger than maxDisk. In memory it
	// is a memoryShare-th of the budget at most.
	maxMemory   = 12 << 20
	memoryShare = 8
	maxDisk     = 1 << 30
	maxFiles    = 32
	// besides is what a content in memory counts in addition to its bytes: there must not be too many small ones.
	besides = 32 << 10
	// inUse is how long after a read a temporary file is not taken away. Two readers of large files would otherwise have
	// each other's unpacked again and again.
	inUse = 2 * time.Second
	// keepFor is how long what was unpacked is kept after it was read last.
	keepFor = 5 * time.Minute
	// atOnce is how many files are unpacked at once: each may take maxInMemory.
	atOnce = 2
)

// cache keeps what was unpacked, within limits.
type cache struct {
	temporary string            // directory of temporary files
	limitOf   func(int64) int64 // limitOf, but in tests
	maxMemory int64             // maxMemory, or less in a small budget
	inMemory  int64             // maxInMemory, or less in a small budget
	turns     chan struct{}     // holds a value for each file that is being unpacked

	mu           sync.Mutex // guards the fields below, and those of contents that say so
	contents     map[storage.Token]*content
	memory, disk int64       // bytes of all contents
	hold         budget.Hold // memory
}

// content is what is in a compressed file in one state.
type content struct {
	token   storage.Token
	readers int         // keep it from being taken away; guarded by cache.mu
	used    time.Time   // when it was read last; guarded by cache.mu
	idle    *time.Timer // takes it away; guarded by cache.mu

	once sync.Once // sets the fields below
	kept
	err error
}

func newCache(limit *budget.Budget, temporary string) *cache {
	k := &cache{
		temporary: temporary, limitOf: limitOf, maxMemory: maxMemory, inMemory: maxInMemory,
		turns: make(chan struct{}, atOnce), contents: map[storage.Token]*content{}, hold: limit.Hold(),
	}
	if limit != nil {
		k.maxMemory = min(maxMemory, limit.Limit()/memoryShare)
		k.inMemory = min(maxInMemory, k.maxMemory/2)
	}
	return k
}

// with calls f with what is in a compressed file, which obj is, and which is unpacked if it is not kept.
func (k *cache) with(token storage.Token, obj storage.Object, f func(*content)) {
	k.mu.Lock()
	c := k.contents[token]
	if c == nil {
		c = &content{token: token}
		k.contents[token] = c
	}
	c.readers++
	k.mu.Unlock()
	defer k.done(c)
	c.once.Do(func() {
		k.turns <- struct{}{}
		defer func() { <-k.turns }()
		if c.kept, c.err = k.unpack(obj, token); c.err == nil {
			k.add(c)
		}
	})
	f(c)
}

// done ends the use of a content. One that could not be unpacked is not kept: the next reader tries again.
func (k *cache) done(c *content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c.readers--
	c.used = time.Now()
	switch {
	case c.err != nil:
		if k.contents[c.token] == c {
			delete(k.contents, c.token)
		}
	case c.idle == nil:
		c.idle = time.AfterFunc(keepFor, storage.Guarded(func() { k.forgetUnused(keepFor) }))
	default:
		c.idle.Reset(keepFor)
	}
}

// add counts what was unpacked, and takes away what was read least recently while there is too much.
func (k *cache) add(c *content) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.count(c, 1)
	for k.memory > k.maxMemory || k.disk > maxDisk {
		var oldest *content
		for _, other := range k.contents {
			mayGo := other.readers == 0 && (other.file == nil && c.file == nil || other.file != nil && time.Since(other.used) > inUse)
			if mayGo && (oldest == nil || other.used.Before(oldest.used)) {
				oldest = other
			}
		}
		if oldest == nil {
			return
		}
		k.forget(oldest)
	}
}

// count adds the size of a content to what is kept, or takes it from that. Callers must hold k.mu.
func (k *cache) count(c *content, sign int64) {
	if c.file != nil {
		k.disk += sign * max(c.size, maxDisk/maxFiles)
		return
	}
	k.memory += sign * (c.size + besides)
	k.hold.Set(k.memory)
}

// forget takes away a content that nobody reads. Callers must hold k.mu.
func (k *cache) forget(c *content) {
	delete(k.contents, c.token)
	c.idle.Stop()
	c.close()
	k.count(c, -1)
}

// forgetUnused takes away what was not read for so long.
func (k *cache) forgetUnused(long time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.contents {
		if c.readers == 0 && time.Since(c.used) >= long {
			k.forget(c)
		}
	}
}
