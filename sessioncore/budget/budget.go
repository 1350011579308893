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
	// Default is the size of a budget in bytes. The longest line that can be written fits, with the
	// copies made of it.
	Default = 256 << 20
	// Min is the smallest usable size.
	Min = 64 << 20
	// overhead is kept for the program, its stacks and small uncounted objects, such as inodes.
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
	idle     int64      // held by caches; never a reason to refuse a client
	refused  int64      // size of the last refused request, 0 once there is room for it
	working  int64
	peak     int64 // the most bytes in use at once since the last takePeak
	evictors []func()

	evicting sync.Mutex // held while evictors are called
}

// New returns a Budget of size bytes. A quarter is left to the garbage collector, which runs more
// often the closer its limit is; Holds and Work share the rest.
func New(size int64) *Budget {
	usable := (max(size, Min) - overhead) / 4 * 3
	working := usable * 2 / 5 // enough for the copies of the longest line beside all that Holds have
	return &Budget{
		size:      size,
		limit:     usable - working,
		workLimit: working,
		room:      semaphore.NewWeighted(working),
	}
}

// Size returns the size in bytes, Default for a nil Budget.
func (b *Budget) Size() int64 {
	if b == nil {
		return Default
	}
	return b.size
}

// Limit returns how many bytes Holds may have together.
func (b *Budget) Limit() int64 { return b.limit }

// Held returns how many bytes Holds have.
func (b *Budget) Held() int64 {
	open, idle, _ := b.state()
	return open + idle
}

// Idle returns how many of these bytes are in caches, which are evicted before a client is refused.
func (b *Budget) Idle() int64 {
	_, idle, _ := b.state()
	return idle
}

// Full returns the reason of the last refusal while there is no room for its request, else "".
func (b *Budget) Full() string {
	_, _, full := b.state()
	return full
}

// state returns the bytes for open files, the idle bytes of caches, and the reason of the last refusal while it
// lasts.
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

// OnFull registers a function that evicts memory, descriptors and temporary files that no client
// uses. It must not wait for a lock that a caller of Resize or Evict holds.
func (b *Budget) OnFull(evict func()) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.evictors = append(b.evictors, evict)
}

// Evict calls the functions of OnFull, the last one first, as a cache may use earlier ones.
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

// takePeak returns the most bytes in use at once since the last call, and begins to count anew.
func (b *Budget) takePeak() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	peak := b.peak
	b.peak = b.open + b.idle + b.working
	return peak
}

// count adds n bytes, or -n fewer, to one of the sums. Callers must hold b.mu.
func (b *Budget) count(sum *int64, n int64) {
	*sum += n
	b.peak = max(b.peak, b.open+b.idle+b.working)
}

// megabytes formats a size in bytes for an error; below ten MiB with a decimal.
func megabytes(n int64) string {
	const mebibyte = 1 << 20
	if n < 10*mebibyte {
		return fmt.Sprintf("%.1f MiB", float64(n)/mebibyte)
	}
	return fmt.Sprintf("%d MiB", n/mebibyte)
}
