package postgres

import (
	"container/list"
	"sync"

	"sessionfs/sessioncore/budget"
)

// kept is the contents that are in memory, and how much they take. What was used least recently is taken away first.
type kept struct {
	mu    sync.Mutex // guards the fields below
	hold  budget.Hold
	bytes int64
	order list.List // of *content; the first was used last
	of    map[*content]*keptContent
}

type keptContent struct {
	at    *list.Element
	bytes int64
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

// reserve makes room for a content of n bytes in all, and takes others away for it. It returns false if there is none.
func (k *kept) reserve(c *content, n int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entry(c)
	for k.hold.Resize(k.bytes+n-e.bytes) != nil {
		if !k.evict(c) {
			return false
		}
	}
	k.bytes += n - e.bytes
	e.bytes = n
	return true
}

// evict takes away the content that was used least recently and that nobody works with. Callers must hold k.mu.
func (k *kept) evict(but *content) bool {
	for at := k.order.Back(); at != nil; at = at.Prev() {
		c := at.Value.(*content)
		if c == but || !c.mu.TryLock() {
			continue
		}
		if c.version != "" {
			c.dropped = c.version
		}
		c.data, c.version, c.whole, c.window, c.slot = nil, "", false, window{}, slotOf{}
		c.length.Store(0)
		c.mu.Unlock()
		k.bytes -= k.of[c].bytes
		k.order.Remove(at)
		delete(k.of, c)
		k.hold.Set(k.bytes)
		return true
	}
	return false
}

// set notes how large a content is.
func (k *kept) set(c *content, n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.entry(c)
	k.bytes += n - e.bytes
	e.bytes = n
	k.hold.Set(k.bytes)
}

// close gives all back.
func (k *kept) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hold.Close()
}
