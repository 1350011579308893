package budget

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

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

// MaxWork returns how many bytes Work can give at most.
func (b *Budget) MaxWork() int64 { return b.work.limit }

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
