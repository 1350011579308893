package search

import (
	"context"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore/storage"
)

const (
	// maxWorkers is how many files a search reads at once. More do not read memory faster.
	maxWorkers = 8
	// maxAhead is how many files are searched before what was found in an earlier one is handed on.
	maxAhead = 1000
)

// reading is files that are searched by several goroutines.
type reading struct {
	workers *errgroup.Group
	ctx     context.Context // of the workers; cancelled when one fails
	cancel  context.CancelFunc
	ahead   chan struct{} // has an element for each file that a worker has taken, and next has not returned
	found   []chan *Found // of file n the one that n modulo their number is
	taken   atomic.Int64  // files
	handed  int           // files that next has returned
}

func (s *Searcher) startReading(ctx context.Context, m Matcher, files []file) *reading {
	r := &reading{found: make([]chan *Found, min(maxAhead, len(files)))}
	r.ahead = make(chan struct{}, len(r.found))
	for i := range r.found {
		r.found[i] = make(chan *Found, 1)
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.workers, r.ctx = errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), maxWorkers, len(files)) {
		r.workers.Go(func() (err error) {
			defer storage.RecoverTo(&err)
			return r.work(&worker{s: s, m: m}, files)
		})
	}
	return r
}

// work searches one of the files after the other.
func (r *reading) work(w *worker, files []file) error {
	for {
		select {
		case r.ahead <- struct{}{}:
		case <-r.ctx.Done():
			return r.ctx.Err()
		}
		n := int(r.taken.Add(1)) - 1
		if n >= len(files) {
			return nil
		}
		found := w.file(r.ctx, files[n])
		if err := r.ctx.Err(); err != nil {
			return err // it may not have been searched to its end
		}
		w.s.read.Add(1)
		r.found[n%len(r.found)] <- found // does not block
	}
}

// next returns what was found in the next file.
func (r *reading) next() (*Found, error) {
	select {
	case found := <-r.found[r.handed%len(r.found)]:
		r.handed++
		<-r.ahead
		return found, nil
	case <-r.ctx.Done():
		return nil, r.workers.Wait()
	}
}

// end ends the workers.
func (r *reading) end() {
	r.cancel()
	_ = r.workers.Wait()
}
