package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// LockLimit is how long a lock is waited for in all; the client's own (docs/format.md, The client's lock). So the
// user hears of a stuck writer within a moment, and no writer holds the lock that long.
const LockLimit = 500 * time.Millisecond

// FIFOMutexes make the goroutines of this process queue for a name, first come first served, before one of
// them asks for the lock that other processes know. Lock order: FIFO mutex, then lock file; mu is held for
// a map access only.
type FIFOMutexes[K comparable] struct {
	mu sync.Mutex // guards of, and users of each FIFOMutex
	of map[K]*FIFOMutex
}

// Len returns how many names somebody uses or wants.
func (g *FIFOMutexes[K]) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.of)
}

// FIFOMutex lives as long as somebody uses or wants it.
type FIFOMutex struct {
	users int
	slot  chan struct{} // full while somebody is in; senders queue in order
	Turn  time.Time     // since when this process has not let others in; for the one who is in
}

// Lock waits until the caller is the only one in, or ctx is done: then its error is WaitError's.
func (g *FIFOMutexes[K]) Lock(ctx context.Context, key K) (in *FIFOMutex, leave func(), err error) {
	g.mu.Lock()
	in = g.of[key]
	if in == nil {
		if g.of == nil {
			g.of = map[K]*FIFOMutex{}
		}
		in = &FIFOMutex{slot: make(chan struct{}, 1), Turn: time.Now()}
		g.of[key] = in
	}
	in.users++
	g.mu.Unlock()

	forget := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if in.users--; in.users == 0 {
			delete(g.of, key)
		}
	}
	if ctx.Err() == nil { // select chooses at random where both are ready
		leave = func() { <-in.slot; forget() }
		select {
		case in.slot <- struct{}{}:
			return in, leave, nil
		default:
		}
		select {
		case in.slot <- struct{}{}:
			return in, leave, nil
		case <-ctx.Done():
		}
	}
	forget()
	return nil, nil, WaitError(ctx)
}

// WithLimit returns a context that ends with ErrLocked as its cause after LockLimit. Callers must call cancel.
func WithLimit(ctx context.Context) (limited context.Context, cancel context.CancelFunc) {
	return context.WithTimeoutCause(ctx, LockLimit, ErrLocked)
}

// WaitError says why the wait of a WithLimit context ended: ErrLocked, or what the caller's context says.
func WaitError(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrLocked) {
		return cause
	}
	return fmt.Errorf("waiting for a lock: %w", ctx.Err())
}

// Sleep waits for d, and reports false when ctx was done before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
