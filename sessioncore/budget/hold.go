package budget

import "fmt"

// Hold is the memory of one object, such as an open file or a cache. Its owner sets its size as a
// whole, so that no part is forgotten. A Hold without a Budget, and a nil *Hold, have no limits.
type Hold struct {
	b     *Budget
	bytes int64
	most  int64 // of a cache; 0 for files that clients have open
}

// Hold returns an empty Hold for a client.
func (b *Budget) Hold() Hold { return Hold{b: b} }

// Kept returns a Hold for a cache, which outlives the request that filled it. It may have at most a
// quarter of the limit, and only memory that clients leave over (see OnFull).
func (b *Budget) Kept() Hold {
	if b == nil {
		return Hold{}
	}
	return Hold{b: b, most: b.limit / 4}
}

// AtMost returns a cache's Hold with its bound lowered to n bytes.
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

// Resize sets the size to n bytes. If there is no room it changes nothing, and the error wraps
// ErrNoMemory. It never fails to shrink. Growth for a client evicts caches if they take the room then.
func (h *Hold) Resize(n int64) error {
	if h == nil || h.b == nil {
		return nil
	}
	h.b.mu.Lock()
	err := h.add(n - h.bytes)
	isOfClient := h.most == 0
	isOver := h.b.idle > 0 && h.b.open+h.b.idle > h.b.limit
	h.b.mu.Unlock()
	if isOfClient && isOver {
		h.b.Evict() // without the lock, as caches resize their Holds
	}
	return err
}

// Add changes the size by n bytes like Resize, for a cache with many parts. It evicts nothing.
func (h *Hold) Add(n int64) error {
	if h.b == nil {
		return nil
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	return h.add(n)
}

// freeShown is the largest size of a listing or document that is not counted.
const freeShown = 64 << 10

// ResizeShown is Resize for a listing or a document. A small one is not counted, so that it can
// always be read, and a large one, which cannot be shown in parts, counts at most an eighth of the
// limit.
func (h *Hold) ResizeShown(n int64) error {
	if h.b == nil {
		return nil
	}
	if n <= freeShown {
		n = 0
	}
	mostCounted := h.b.limit / 8
	return h.Resize(min(n, mostCounted))
}

// Set sets the size to n bytes that are allocated already, room or not.
func (h *Hold) Set(n int64) {
	if h == nil || h.b == nil {
		return
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.set(n)
}

// Close sets the size to zero. The Hold can be used again.
func (h *Hold) Close() { h.Set(0) }

// add is Add for callers that hold b.mu. It records a refusal of a client, for Budget.Full.
func (h *Hold) add(more int64) error {
	err := h.admit(more)
	if err != nil {
		return err
	}
	h.set(h.bytes + more)
	return nil
}

// admit returns an error if there is no room for so many bytes more. Callers must hold b.mu.
func (h *Hold) admit(more int64) error {
	b := h.b
	isCache := h.most > 0
	switch {
	case more <= 0:
		return nil
	case isCache && h.bytes+more > h.most:
		return ErrNoMemory
	case isCache && b.open+b.idle+more > b.limit:
		return ErrNoMemory
	case isCache || b.open+more <= b.limit: // a client gets the room of caches
		return nil
	}
	b.refused = min(more, b.limit)
	return fmt.Errorf("%w, and %s more are asked for: close some, or mount with -o memory= and more than %s",
		b.full(), megabytes(more), megabytes(b.size))
}

// set is Set for callers that hold b.mu. It ends the record of a refusal once there is room for that request.
func (h *Hold) set(n int64) {
	b := h.b
	part := &h.b.open
	if h.most > 0 {
		part = &h.b.idle
	}
	b.count(part, n-h.bytes)
	h.bytes = n
	if b.open+b.refused <= b.limit {
		b.refused = 0
	}
}
