package nfs

import (
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	maxCached = 64              // values of a kind that are kept
	idleTime  = 3 * time.Second // how long one is kept without use
)

// cache keeps a value for each of some objects while clients use it.
type cache[T any] struct {
	mu      sync.Mutex // guards of, and the fields of cached
	of      *simplelru.LRU[*object, *cached[T]]
	closing sync.WaitGroup
}

// cached is a value that is closed when it is no longer kept and has no users, which are counted.
type cached[T any] struct {
	sync.WaitGroup
	value      T
	close      func()
	made, used time.Time
}

func newCache[T any]() *cache[T] {
	c := &cache[T]{}
	c.of, _ = simplelru.NewLRU(maxCached, func(_ *object, v *cached[T]) { // maxCached is positive
		c.closing.Go(func() {
			v.Wait()
			v.close()
		})
	})
	return c
}

// take returns the value of an object if it is good, else nil. The caller must call Done.
func (c *cache[T]) take(o *object, good func(*cached[T]) bool) *cached[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.of.Get(o)
	if !ok || !good(v) {
		return nil
	}
	v.Add(1)
	v.used = time.Now()
	return v
}

// put keeps a value in the place of the earlier one. The caller must call Done.
func (c *cache[T]) put(o *object, v *cached[T]) *cached[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	v.Add(1)
	v.used = time.Now()
	c.of.Remove(o)
	c.of.Add(o, v)
	return v
}

// expire drops the values that were not used for so long; with 0 it drops and closes all.
func (c *cache[T]) expire(idle time.Duration) {
	c.mu.Lock()
	for _, v, ok := c.of.GetOldest(); ok && time.Since(v.used) >= idle; _, v, ok = c.of.GetOldest() {
		c.of.RemoveOldest()
	}
	c.mu.Unlock()
	if idle == 0 {
		c.closing.Wait()
	}
}
