package search

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore/storage"
)

const (
	// maxWorkers bounds the files that a search reads at once. More do not read memory faster.
	maxWorkers = 8
	// maxAhead bounds the files searched before the result of an earlier one is returned.
	maxAhead = 1000
)

// reading is a concurrent search of files.
type reading struct {
	workers  *errgroup.Group
	ctx      context.Context // of the workers; cancelled when one fails
	cancel   context.CancelFunc
	ahead    chan struct{}    // has an element for each file that is started, or about to, and not returned
	found    []chan *FileHits // file n uses channel n modulo their number
	started  atomic.Int64     // number of files
	returned int              // number of files
}

// startReading starts the search of files by unused workers like w. The caller must call end.
func startReading(ctx context.Context, w worker, files []searchedFile) *reading {
	slots := min(maxAhead, len(files))
	r := &reading{
		found: make([]chan *FileHits, slots),
		ahead: make(chan struct{}, slots),
	}
	for i := range r.found {
		r.found[i] = make(chan *FileHits, 1)
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.workers, r.ctx = errgroup.WithContext(ctx)
	work := func() (err error) {
		defer storage.RecoverTo(&err)
		own := w
		return r.work(&own, files)
	}
	for range min(runtime.GOMAXPROCS(0), maxWorkers, len(files)) {
		r.workers.Go(work)
	}
	return r
}

// work searches one file after the other, as long as the results are not too far ahead of next. Several
// goroutines share the files. The error is one of ctx.
func (r *reading) work(w *worker, files []searchedFile) error {
	for {
		select {
		case r.ahead <- struct{}{}:
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		n := int(r.started.Add(1)) - 1
		if n >= len(files) {
			return nil
		}
		found := w.file(r.ctx, files[n])
		err := r.ctx.Err()
		if err != nil {
			return err // the search may be incomplete
		}
		w.s.read.Add(1)
		r.found[n%len(r.found)] <- found // does not block: ahead bounds the results that are not returned
	}
}

// next waits for the result of the next file, in the order of the files. There must be one. The error is that
// of a worker, or of ctx.
func (r *reading) next() (*FileHits, error) {
	select {
	case found := <-r.found[r.returned%len(r.found)]:
		r.returned++
		<-r.ahead
		return found, nil
	case <-r.ctx.Done():
		return nil, r.workers.Wait()
	}
}

// end ends the workers, and waits for them.
func (r *reading) end() {
	r.cancel()
	_ = r.workers.Wait()
}
