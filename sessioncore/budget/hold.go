package budget

import "fmt"

// Hold is the memory of one thing, such as an open file or a cache. Its owner sets its size, so that no path can forget to
// give a part back. A Hold without a Budget, and a nil *Hold, have no limits.
type Hold struct {
	b     *Budget
	bytes int64
	most  int64 // of a cache; 0 for files that clients have open
}

// Hold returns an empty Hold for a client.
func (b *Budget) Hold() Hold { return Hold{b: b} }

// Kept returns a Hold for a cache, which keeps data beyond the request that made it. It may hold a quarter at most, of the
// memory that clients leave over. Its memory costs no client anything: see OnFull.
func (b *Budget) Kept() Hold {
	if b == nil {
		return Hold{}
	}
	return Hold{b: b, most: b.limit / 4}
}

// AtMost returns the Hold of a cache with a bound of n bytes, if that is less than its own.
func (h Hold) AtMost(n int64) Hold {
	h.most = min(h.most, n)
	return h
}

// Another returns an empty Hold of the same Budget.
func (h *Hold) Another() Hold {
	if h == nil {
		return Hold{}
	}
	return Hold{b: h.b}
}

// Resize makes it hold n bytes. If there is no room for them, it stays as it is, and the error wraps ErrNoMemory.
// Making it smaller never fails.
func (h *Hold) Resize(n int64) error {
	if h == nil || h.b == nil {
		return nil
	}
	h.b.mu.Lock()
	err := h.add(n - h.bytes)
	evict := h.most == 0 && h.b.idle > 0 && h.b.open+h.b.idle > h.b.limit
	h.b.mu.Unlock()
	if evict {
		h.b.Evict()
	}
	return err
}

// Add is Resize by n bytes more, or less, for a cache whose parts come and go.
func (h *Hold) Add(n int64) error {
	if h.b == nil {
		return nil
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	return h.add(n)
}

// freeShown is the size up to which a listing or document is not counted.
const freeShown = 64 << 10

// ResizeShown is Resize for a listing or a document. A small one is not counted, so that it can be seen whatever others
// hold; and of a large one no more than an eighth of the limit: it cannot be shown in parts.
func (h *Hold) ResizeShown(n int64) error {
	if h.b == nil {
		return nil
	}
	if n <= freeShown {
		n = 0
	}
	return h.Resize(min(n, h.b.limit/8))
}

// Set makes it hold n bytes that exist already, whether there is room or not.
func (h *Hold) Set(n int64) {
	if h == nil || h.b == nil {
		return
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.set(n)
}

// Close gives back all. The Hold can be used again.
func (h *Hold) Close() { h.Set(0) }

// add is Add for callers that hold b.mu.
func (h *Hold) add(more int64) error {
	b := h.b
	switch {
	case more <= 0:
	case h.most > 0 && (h.bytes+more > h.most || b.open+b.idle+more > b.limit):
		return ErrNoMemory
	case h.most == 0 && b.open+more > b.limit:
		b.refused = min(more, b.limit)
		return fmt.Errorf("%w, and %s more are asked for: close some, or mount with -o memory= and more than %s",
			b.full(), megabytes(more), megabytes(b.size))
	}
	h.set(h.bytes + more)
	return nil
}

// set is Set for callers that hold b.mu.
func (h *Hold) set(n int64) {
	b, part := h.b, &h.b.open
	if h.most > 0 {
		part = &h.b.idle
	}
	b.give(part, n-h.bytes)
	h.bytes = n
	if b.open+b.refused <= b.limit {
		b.refused = 0
	}
}
