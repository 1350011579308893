package nfs

import (
	"sync"
	"time"
)

// cache keeps a value for each of some objects while clients use it.
type cache[T any] struct {
	limit int           // more are not kept
	idle  time.Duration // how long one is kept without use

	mu sync.Mutex // guards the rest, and the fields of cached
	of map[*object]*cached[T]
}

// cached is a value that is closed when it is no longer kept and nobody uses it.
type cached[T any] struct {
	value      T
	close      func()
	made, used time.Time
	users      int
	gone       bool
}

// take returns the value of an object if it is good, else nil. The caller must release it.
func (c *cache[T]) take(o *object, good func(*cached[T]) bool) *cached[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.of[o]
	if v == nil || !good(v) {
		return nil
	}
	v.users++
	v.used = time.Now()
	return v
}

// put keeps a value in the place of the earlier one, or of that which was not used for longest. The
// caller must release it.
func (c *cache[T]) put(o *object, value T, made time.Time, close func()) *cached[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(o)
	var oldest *object
	for other, v := range c.of {
		if oldest == nil || v.used.Before(c.of[oldest].used) {
			oldest = other
		}
	}
	if len(c.of) >= c.limit {
		c.drop(oldest)
	}
	v := &cached[T]{value: value, close: close, made: made, used: time.Now(), users: 1}
	c.of[o] = v
	return v
}

func (c *cache[T]) release(v *cached[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v.users--
	v.closeUnused()
}

func (v *cached[T]) closeUnused() {
	if v.gone && v.users == 0 {
		v.close()
	}
}

func (c *cache[T]) drop(o *object) {
	if v := c.of[o]; v != nil {
		v.gone = true
		v.closeUnused()
		delete(c.of, o)
	}
}

// expire drops the values that nobody has used for a while; all, if all is set.
func (c *cache[T]) expire(all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for o, v := range c.of {
		if all || time.Since(v.used) > c.idle {
			c.drop(o)
		}
	}
}
