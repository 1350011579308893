package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// LockLimit is the maximum time to wait for a lock in total. It is the client's own limit (docs/format.md, The
// client's lock): users hear of a stuck writer within a moment, and no writer holds the lock that long.
const LockLimit = 500 * time.Millisecond

// FIFOMutexes is a set of FIFO mutexes by key. The goroutines of this process queue for a key before one of them
// takes the lock that other processes see. Lock order: FIFO mutex, then lock file. mu is held during a map access
// only.
type FIFOMutexes[K comparable] struct {
	mu sync.Mutex // guards the map of, and FIFOMutex.users
	of map[K]*FIFOMutex
}

// FIFOMutex is a mutex whose waiters get it in the order of their calls. It exists while it is locked or waited
// for.
type FIFOMutex struct {
	// number of goroutines that hold it or wait
	users int
	slot  chan struct{} // full while it is locked; senders queue in order
	Turn  time.Time     // since when this process has kept other processes waiting; only the holder may access it
}

// Lock locks the mutex of a key, waiting for it until ctx is done. Callers must call leave to unlock it. The error
// is that of WaitError.
func (g *FIFOMutexes[K]) Lock(ctx context.Context, key K) (in *FIFOMutex, leave func(), err error) {
	g.mu.Lock()
	in = g.enter(key)
	g.mu.Unlock()
	if ctx.Err() == nil { // select chooses at random if both are ready
		leave = func() { <-in.slot; g.forget(key, in) }
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
	g.forget(key, in)
	return nil, nil, WaitError(ctx)
}

// TryLock locks the mutex of a key if nobody holds it or waits for it. If ok, callers must call leave to unlock it.
func (g *FIFOMutexes[K]) TryLock(key K) (leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[key] != nil {
		return nil, false
	}
	in := g.enter(key)
	in.slot <- struct{}{} // it is new
	return func() { <-in.slot; g.forget(key, in) }, true
}

// enter returns the mutex of a key for one more user. Callers must hold g.mu.
func (g *FIFOMutexes[K]) enter(key K) *FIFOMutex {
	in := g.of[key]
	if in == nil {
		if g.of == nil {
			g.of = map[K]*FIFOMutex{}
		}
		in = &FIFOMutex{slot: make(chan struct{}, 1), Turn: time.Now()}
		g.of[key] = in
	}
	in.users++
	return in
}

func (g *FIFOMutexes[K]) forget(key K, in *FIFOMutex) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if in.users--; in.users == 0 {
		delete(g.of, key)
	}
}

// WithLimit returns a context that ends after LockLimit with ErrLocked as its cause. Callers must call cancel.
func WithLimit(ctx context.Context) (limited context.Context, cancel context.CancelFunc) {
	return context.WithTimeoutCause(ctx, LockLimit, ErrLocked)
}

// WaitError returns why waiting with a context of WithLimit ended: ErrLocked, or an error that wraps ctx.Err().
func WaitError(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, ErrLocked) {
		return cause
	}
	return fmt.Errorf("waiting for a lock: %w", ctx.Err())
}

// Sleep waits for d. It reports whether d passed before ctx was done.
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

// Await returns what f returns, or the error of ctx as soon as that is done. f then goes on by itself, and drop gets what
// it returns.
func Await[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	if ctx.Done() == nil {
		return f()
	}
	var value T
	var err error
	done := make(chan struct{})
	go Guarded(func() {
		func() {
			defer RecoverTo(&err)
			value, err = f()
		}()
		select {
		case done <- struct{}{}:
		case <-ctx.Done():
			if err == nil {
				drop(value)
			}
		}
	})()
	select {
	case <-done:
		return value, err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Waiters counts the callers that wait for a piece of work, which goes on as long as one of them
// does. The one that does the work may be gone long before the others.
type Waiters struct {
	mu     sync.Mutex // guards the fields below
	n      int
	cancel context.CancelFunc // of the work under way, or nil
}

// Join adds a caller until its context is done or it calls leave.
func (w *Waiters) Join(ctx context.Context) (leave func()) {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
	left := sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.n--; w.n == 0 && w.cancel != nil {
			w.cancel()
		}
	})
	stop := context.AfterFunc(ctx, left)
	return func() { stop(); left() }
}

// Count returns how many callers wait.
func (w *Waiters) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Work returns the context of a piece of work. Callers must call done when it ends, and must have
// joined; there may be only one at a time.
func (w *Waiters) Work() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel = cancel; w.n == 0 {
		cancel()
	}
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cancel = nil
		cancel()
	}
}

// StatUntil is obj.Stat for a caller that can give up. If the object has a method of this name, as
// one has that is made when it is looked at, that ends when ctx is done.
func StatUntil(ctx context.Context, obj Object) (Stat, error) {
	if o, ok := obj.(interface {
		StatUntil(ctx context.Context) (Stat, error)
	}); ok {
		return o.StatUntil(ctx)
	}
	return obj.Stat()
}

// LockUntil locks a mutex that others may hold for long. If ctx is done before that, it returns the error of ctx.
func LockUntil(ctx context.Context, mu *sync.Mutex) error {
	if mu.TryLock() {
		return nil
	}
	_, err := Await(ctx, func() (*sync.Mutex, error) {
		mu.Lock()
		return mu, nil
	}, (*sync.Mutex).Unlock)
	return err
}
