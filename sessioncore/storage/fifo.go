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
	mu     sync.Mutex            // guards byName, and FIFOMutex.users
	byName map[string]*FIFOMutex // those with users
}

// FIFOMutex is a mutex that waiters get in the order of their calls. It exists while used.
type FIFOMutex struct {
	users int           // goroutines that hold it or wait
	slot  chan struct{} // full while it is locked; senders queue in order
	Turn  time.Time     // since when this process has kept other processes waiting; only the holder may access it
}

// Lock waits for the mutex of a name until ctx is done. Callers must call leave to unlock it. The
// error is WaitError's.
func (g *FIFOMutexes) Lock(ctx context.Context, name string) (held *FIFOMutex, leave func(), err error) {
	m := g.enter(name)
	if !m.lock(ctx) {
		g.forget(name, m)
		return nil, nil, WaitError(ctx)
	}
	leave = func() {
		<-m.slot
		g.forget(name, m)
	}
	return m, leave, nil
}

// lock waits for a mutex until ctx is done, and reports whether it is locked. It is not if ctx was done before.
func (m *FIFOMutex) lock(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case m.slot <- struct{}{}:
		return true
	case <-ctx.Done():
	}
	select { // the one above chooses at random if both became ready
	case m.slot <- struct{}{}:
		return true
	default:
		return false
	}
}

// enter returns the mutex of a name with one more user.
func (g *FIFOMutexes) enter(name string) *FIFOMutex {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.byName[name]
	if m == nil {
		if g.byName == nil {
			g.byName = map[string]*FIFOMutex{}
		}
		m = &FIFOMutex{slot: make(chan struct{}, 1), Turn: time.Now()}
		g.byName[name] = m
	}
	m.users++
	return m
}

// forget ends a use of a mutex. The last user removes it.
func (g *FIFOMutexes) forget(name string, m *FIFOMutex) {
	g.mu.Lock()
	defer g.mu.Unlock()
	m.users--
	if m.users == 0 {
		delete(g.byName, name)
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
// the background, and drop gets its result unless f fails. A panic of f is its error. With a ctx that is never done, f runs
// in the caller's goroutine, and panics there.
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
	mu     sync.Mutex         // guards the fields below
	n      int                // number of callers
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
// after it. The context ends when the last caller leaves; it has ended already if all left before.
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
