package budget

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	size      int64
	limit     int64 // of all Holds
	workLimit int64 // of all Work

	room    *semaphore.Weighted // of workLimit
	waiting atomic.Int32        // callers of Work

	mu       sync.Mutex // guards the fields below, and the fields of every Hold
	open     int64      // held for clients
	idle     int64      // held by caches, which count for no refusal
	refused  int64      // bytes that a client was refused last, 0 once there is room for them
	working  int64
	peak     int64 // the most that was given at once since the last takePeak
	evictors []func()

	evicting sync.Mutex // held while evictors are called
}

// New returns a Budget of size bytes in all. A quarter is left to the garbage collector, which runs the more often
// the closer its limit is. The rest is divided between Holds and Work.
func New(size int64) *Budget {
	usable := (max(size, Min) - overhead) / 4 * 3
	working := usable * 2 / 5
	return &Budget{size: size, limit: usable - working, workLimit: working, room: semaphore.NewWeighted(working)}
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

// Held returns how many bytes are held.
func (b *Budget) Held() int64 {
	open, idle, _ := b.state()
	return open + idle
}

// Idle returns how many of the held bytes are in caches, which give them back before a client is refused.
func (b *Budget) Idle() int64 {
	_, idle, _ := b.state()
	return idle
}

// Full returns the reason why a client was refused memory, as long as there is no room for its request, else "".
func (b *Budget) Full() string {
	_, _, full := b.state()
	return full
}

func (b *Budget) state() (open, idle int64, full string) {
	if b == nil {
		return 0, 0, ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refused > 0 {
		full = b.full().Error()
	}
	return b.open, b.idle, full
}

// full returns the error for a client that finds no room. Callers must hold b.mu.
func (b *Budget) full() error {
	return fmt.Errorf("%w: %d of %d MiB are in open files", ErrNoMemory, b.open>>20, b.limit>>20)
}

// OnFull registers a function that evicts the unused part of a cache: memory, descriptors and temporary files that no
// client uses. It may wait for nothing that a caller of Resize or Evict holds.
func (b *Budget) OnFull(evict func()) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictors = append(b.evictors, evict)
}

// Evict calls the functions that were registered by OnFull, the last one first, as a cache may use those before it.
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
	b.peak = b.open + b.idle + b.working
	return peak
}

// give gives bytes, or takes them back if they are negative. Callers must hold b.mu.
func (b *Budget) give(to *int64, n int64) {
	*to += n
	b.peak = max(b.peak, b.open+b.idle+b.working)
}

// megabytes formats a size for a reason.
func megabytes(n int64) string {
	if n < 10<<20 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
