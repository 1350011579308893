package storage

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// LockLimit bounds the total wait for a lock, as in the client (docs/format.md, The client's lock):
// users hear of a stuck writer soon, and no writer holds the lock that long.
const LockLimit = 500 * time.Millisecond

// FIFOMutexes is a set of FIFO mutexes by name. The goroutines of this process queue for a name
// before one of them takes the lock file of all processes. mu is held during a map access only.
type FIFOMutexes struct {
	mu sync.Mutex // guards the map of, and FIFOMutex.users
	of map[string]*FIFOMutex
}

// FIFOMutex is a mutex that waiters get in the order of their calls. It exists while used.
type FIFOMutex struct {
	users int           // goroutines that hold it or wait
	slot  chan struct{} // full while it is locked; senders queue in order
	Turn  time.Time     // since when this process has kept other processes waiting; only the holder may access it
}

// Lock waits for the mutex of a name until ctx is done. Callers must call leave to unlock it. The
// error is WaitError's.
func (g *FIFOMutexes) Lock(ctx context.Context, name string) (in *FIFOMutex, leave func(), err error) {
	in = g.enter(name)
	if ctx.Err() == nil {
		leave = func() {
			<-in.slot
			g.forget(name, in)
		}
		select {
		case in.slot <- struct{}{}:
			return in, leave, nil
		case <-ctx.Done():
		}
		select { // the other one chooses at random if both became ready
		case in.slot <- struct{}{}:
			return in, leave, nil
		default:
		}
	}
	g.forget(name, in)
	return nil, nil, WaitError(ctx)
}

// enter returns the mutex of a name with one more user.
func (g *FIFOMutexes) enter(name string) *FIFOMutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := g.of[name]
	if in == nil {
		if g.of == nil {
			g.of = map[string]*FIFOMutex{}
		}
		in = &FIFOMutex{slot: make(chan struct{}, 1), Turn: time.Now()}
		g.of[name] = in
	}
	in.users++
	return in
}

// forget ends a use of a mutex. The last user removes it.
func (g *FIFOMutexes) forget(name string, in *FIFOMutex) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in.users--
	if in.users == 0 {
		delete(g.of, name)
	}
}

// WithLimit returns a context that ends after LockLimit with the cause ErrLocked, or by cancel.
func WithLimit(ctx context.Context) (limited context.Context, cancel context.CancelFunc) {
	return context.WithTimeoutCause(ctx, LockLimit, ErrLocked)
}

// WaitError returns ErrLocked for a context that WithLimit ended, else an error that wraps
// ctx.Err().
func WaitError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ErrLocked) {
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

// Await returns the result of f, or the error of ctx as soon as that is done; then f continues in
// the background, and drop gets its result.
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

// Waiters counts the callers that wait for a piece of work, which continues as long as one of them
// does, even without the caller that started it.
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
		w.n--
		if w.n == 0 && w.cancel != nil {
			w.cancel()
		}
	})
	stop := context.AfterFunc(ctx, left)
	return func() {
		stop()
		left()
	}
}

// Count returns the number of waiting callers.
func (w *Waiters) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// Work returns the context of a piece of work, one at a time. Callers join before it and call done
// after it.
func (w *Waiters) Work() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = cancel
	if w.n == 0 {
		cancel()
	}
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cancel = nil
		cancel()
	}
}

// StatUntil is obj.Stat for a caller that can give up. It uses the object's method of this name, if
// any, which ends when ctx is done.
func StatUntil(ctx context.Context, obj Object) (Stat, error) {
	slow, isSlow := obj.(StatUntilObject)
	if isSlow {
		return slow.StatUntil(ctx)
	}
	return obj.Stat()
}

// LockUntil locks a mutex that others may hold for long. When ctx is done it returns ctx's error.
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
