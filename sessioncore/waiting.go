package sessioncore

import (
	"context"
	"sync"
)

// waiting counts the callers that wait for a piece of work, which goes on as long as one of them does. The one that
// does the work may be gone long before the others.
type waiting struct {
	mu     sync.Mutex // guards the fields below
	n      int
	cancel context.CancelFunc // of the work under way, or nil
}

// join adds a caller until its context is done or it calls leave.
func (w *waiting) join(ctx context.Context) (leave func()) {
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

// work returns the context of a piece of work. Callers must call done when it ends, and must have joined; there may be
// only one at a time.
func (w *waiting) work() (ctx context.Context, done func()) {
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
