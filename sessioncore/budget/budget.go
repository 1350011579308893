package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// ErrNoMemory means that something would need more memory than the budget has left.
var ErrNoMemory = errors.New("memory is full")

const (
	// Default is the size of a budget in bytes: the longest line that can be written fits, and so do the copies that
	// are made of it.
	Default = 256 << 20
	// Min is the size below which hardly anything works.
	Min = 64 << 20
	// overhead is the part of the size that is not handed out: the program and its stacks, and what is too small to be
	// counted (an open file, a node that the kernel knows).
	overhead = 32 << 20
)

// Budget bounds memory. It is safe for concurrent use; a nil Budget has no limits.
type Budget struct {
	size  int64
	limit int64 // of everything that is held

	mu       sync.Mutex // guards the fields below, and the fields of every Hold
	open     int64      // held for clients
	idle     int64      // held by caches, which count for no refusal
	refused  int64      // bytes that a client was refused last, 0 once there is room for them
	working  int64
	peak     int64 // the most that was given at once since the last takePeak
	evictors []func()

	evicting sync.Mutex // held while evictors are called
	work     work
}

// New returns a Budget of size bytes in all.
//
// A quarter of the size is left to the garbage collector: the closer it is kept to what is in use, the more often it
// runs. The rest is divided between what is held and the work on it.
func New(size int64) *Budget {
	usable := (max(size, Min) - overhead) / 4 * 3
	working := usable * 2 / 5
	b := &Budget{size: size, limit: usable - working}
	b.work = work{limit: working, room: semaphore.NewWeighted(working)}
	return b
}

// Held returns how many bytes are held.
func (b *Budget) Held() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open + b.idle
}

// Idle returns how many of the held bytes are in caches, which give them back before a client is
// refused.
func (b *Budget) Idle() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.idle
}

// Full returns the reason why a client was refused memory, as long as there is no room for its
// request, else "".
func (b *Budget) Full() string {
	if b == nil {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused == 0 {
		return ""
	}
	return b.full().Error()
}

// full returns the error for a client that finds no room. Callers must hold b.mu.
func (b *Budget) full() error {
	return fmt.Errorf("%w: %d of %d MiB are in open files", ErrNoMemory, b.open>>20, b.limit>>20)
}

// OnFull registers a function that evicts the unused part of a cache: memory, descriptors and
// temporary files that no client uses. It may wait for nothing that a caller of Resize or Evict holds.
func (b *Budget) OnFull(evict func()) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictors = append(b.evictors, evict)
}

// Evict calls the functions that were registered by OnFull, the last one first, as a cache may use
// those before it.
func (b *Budget) Evict() {
	if b == nil {
		return
	}
	b.evicting.Lock()
	defer b.evicting.Unlock()
	b.mu.Lock()
	evictors := slices.Clone(b.evictors)
	b.mu.Unlock()
	for _, evict := range slices.Backward(evictors) {
		evict()
	}
}

// takePeak returns the most that was given at once since the last call.
func (b *Budget) takePeak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = b.inUse()
	return peak
}

// inUse returns how much is given. Callers must hold b.mu.
func (b *Budget) inUse() int64 { return b.open + b.idle + b.working }

// addWork counts work that begins, or that ends if n is negative.
func (b *Budget) addWork(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.working += n
	b.peak = max(b.peak, b.inUse())
}

// Size returns the size in bytes, that of the default where there is no Budget.
func (b *Budget) Size() int64 {
	if b == nil {
		return Default
	}
	return b.size
}

// Limit returns how many bytes may be held in all.
func (b *Budget) Limit() int64 { return b.limit }

// Hold is what one thing holds: an open file, or the answers in it. It says how much it holds rather than how much is
// added, so that no path through its owner can forget to give a part back; Close gives back all. A Hold without a
// Budget, and a nil *Hold, have no limits.
type Hold struct {
	b     *Budget
	bytes int64
	most  int64 // of a cache; 0 for files that clients have open
}

// Hold returns a Hold that holds nothing yet.
func (b *Budget) Hold() Hold { return Hold{b: b} }

// Kept returns a Hold for a cache, which keeps data beyond the request that made it. It may hold a
// quarter at most, of the memory that clients leave over. Its memory costs no client anything: see
// OnFull.
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

// Resize makes it hold n bytes. If that is more than there is room for, it holds what it did, and the error wraps
// ErrNoMemory. Making it smaller never fails.
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

// add is Add for callers that hold b.mu.
func (h *Hold) add(more int64) error {
	if more > 0 {
		if err := h.check(more); err != nil {
			return err
		}
	}
	h.set(h.bytes + more)
	return nil
}

// freeShown is how much of what is shown is not counted: an ordinary listing or document.
const freeShown = 64 << 10

// ResizeShown is Resize for what a client looks at, a listing or a document. What is small is not counted, so that it
// can be seen whatever others hold; and of what is large no more than an eighth of the limit: it cannot be shown in parts.
func (h *Hold) ResizeShown(n int64) error {
	if h == nil || h.b == nil {
		return nil
	}
	if n <= freeShown {
		n = 0
	}
	return h.Resize(min(n, h.b.limit/8))
}

// Set makes it hold n bytes, whether there is room or not: for what exists already.
func (h *Hold) Set(n int64) {
	if h == nil || h.b == nil {
		return
	}
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	h.set(n)
}

// Another returns a Hold of the same Budget, which holds nothing yet.
func (h *Hold) Another() Hold {
	if h == nil {
		return Hold{}
	}
	return h.b.Hold()
}

// Close gives back what it holds. It can be called again, and the Hold used again.
func (h *Hold) Close() { h.Set(0) }

// set makes the Hold hold n bytes. Callers must hold b.mu.
func (h *Hold) set(n int64) {
	b, more := h.b, n-h.bytes
	h.bytes = n
	if h.most > 0 {
		b.idle += more
	} else {
		b.open += more
	}
	if b.open+b.refused <= b.limit {
		b.refused = 0
	}
	b.peak = max(b.peak, b.inUse())
}

// check returns an error if the Hold may not hold more bytes than it does. Callers must hold b.mu.
func (h *Hold) check(more int64) error {
	b := h.b
	switch {
	case h.most > 0 && (h.bytes+more > h.most || b.open+b.idle+more > b.limit):
		return ErrNoMemory
	case h.most == 0 && b.open+more > b.limit:
		b.refused = min(more, b.limit)
		return fmt.Errorf("%w, and %s more are asked for: close some, or mount with -o memory= and more than %s",
			b.full(), megabytes(more), megabytes(b.size))
	}
	return nil
}

// megabytes formats a size for a reason.
func megabytes(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

const (
	// freeWork is the work that is not counted: nearly all writes and reads. What a request takes then is about what
	// the kernel sent with it.
	freeWork = 256 << 10
	// maxWaiting is how much work may wait. The kernel sends up to 1 MiB with each write that waits.
	maxWaiting = 64
	// maxWait is how long work waits. Others end sooner, unless the storage hangs.
	maxWait = 30 * time.Second
)

// work is what is in use for a moment.
type work struct {
	limit   int64
	room    *semaphore.Weighted
	waiting atomic.Int32
}

// Work waits until n bytes may be used for a moment, in the order of the callers, and returns the function that gives
// them back. The caller must not call Work or wait for a client before that. The error wraps ErrNoMemory if there can
// never be that much, if too many wait, or if others do not end; it is that of ctx if ctx is done.
func (b *Budget) Work(ctx context.Context, n int64) (done func(), err error) {
	if b == nil || n <= freeWork {
		return func() {}, nil
	}
	w := &b.work
	if n > w.limit {
		return nil, fmt.Errorf("%w: this takes %s for a moment, at most %s are for that: mount with -o memory= and more than %s",
			ErrNoMemory, megabytes(n), megabytes(w.limit), megabytes(b.size))
	}
	if !w.room.TryAcquire(n) {
		if err := w.wait(ctx, n); err != nil {
			return nil, err
		}
	}
	b.addWork(n)
	return func() {
		b.addWork(-n)
		w.room.Release(n)
	}, nil
}

func (w *work) wait(ctx context.Context, n int64) error {
	defer w.waiting.Add(-1)
	if w.waiting.Add(1) > maxWaiting {
		return fmt.Errorf("%w: %d others wait for some already", ErrNoMemory, maxWaiting)
	}
	limited, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if err := w.room.Acquire(limited, n); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: others have used %s for %v", ErrNoMemory, megabytes(w.limit), maxWait)
	}
	return nil
}
