package budget

import (
	"context"
	"fmt"
	"time"
)

const (
	// freeWork is the size of work that is not counted: nearly all reads and writes.
	freeWork = 256 << 10
	// maxWaiting bounds the waiting work. The kernel sends up to 1 MiB with each write that waits.
	maxWaiting = 64
	// maxWait is how long work waits. Other work ends sooner, unless the storage hangs.
	maxWait = 30 * time.Second
)

// Work waits its turn until n bytes may be used for a moment, and returns the function that frees
// them. The caller must not call Work or wait for a client before done. The error wraps ErrNoMemory
// if n exceeds the limit, too many callers wait, or other work does not end; else it is ctx's.
func (b *Budget) Work(ctx context.Context, n int64) (done func(), err error) {
	if b == nil || n <= freeWork {
		return func() {}, nil
	}
	if n > b.workLimit {
		const why = "%w: this takes %s for a moment, at most %s are for that: mount with -o memory= and more than %s"
		return nil, fmt.Errorf(why, ErrNoMemory, megabytes(n), megabytes(b.workLimit), megabytes(b.size))
	}
	if !b.room.TryAcquire(n) {
		err := b.wait(ctx, n)
		if err != nil {
			return nil, err
		}
	}
	b.countWork(n)
	return func() {
		b.countWork(-n)
		b.room.Release(n)
	}, nil
}

// countWork counts n bytes more for work, or -n fewer.
func (b *Budget) countWork(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(&b.working, n)
}

// wait waits until n bytes are free for work and takes them, at most maxWait, and in a queue of at most
// maxWaiting. The errors are as for Work.
func (b *Budget) wait(ctx context.Context, n int64) error {
	waiting := b.waiting.Add(1)
	defer b.waiting.Add(-1)
	if waiting > maxWaiting {
		return fmt.Errorf("%w: %d others wait for some already", ErrNoMemory, maxWaiting)
	}
	limited, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	err := b.room.Acquire(limited, n)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%w: others have used %s for %v", ErrNoMemory, megabytes(b.workLimit), maxWait)
}
