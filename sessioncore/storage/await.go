package storage

import (
	"context"
	"sync"
)

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
