package storage

import "context"

type progressKey struct{}

// WithProgress returns a context for work that calls tell with its progress: so many of all
// parts, or of 0 where the number of all is not known. tell is called by one goroutine at a time.
func WithProgress(ctx context.Context, tell func(done, of int)) context.Context {
	return context.WithValue(ctx, progressKey{}, tell)
}

// Progress tells how much of the work for a context is done.
func Progress(ctx context.Context, done, of int) {
	tell, ok := ctx.Value(progressKey{}).(func(done, of int))
	if ok {
		tell(done, of)
	}
}
