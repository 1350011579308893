package search

import (
	"context"
	"math"
	"sync"

	"sessionfs/sessioncore/storage"
)

// run is one search over a list of files.
type run struct {
	*Searcher
	ctx   context.Context
	m     Matcher
	files []file // in order
	limit int
	each  func(*Found) error // called under mu in the order of files; may be nil

	mu    sync.Mutex // guards what follows
	found []*Found   // of files; nil for those that were not searched
	next  int        // where workers go on
	done  int        // up to here all files are searched
	hits  int        // in those
	err   error
}

// newRun returns a run over the files.
func (s *Searcher) newRun(ctx context.Context, m Matcher, files []file) *run {
	r := &run{Searcher: s, ctx: ctx, m: m, files: files, limit: s.Limit}
	if r.limit == 0 {
		r.limit = math.MaxInt
	}
	r.found = make([]*Found, len(r.files))
	return r
}

// all searches the files, until it is known what the limit leaves. What is known already is not searched again.
func (r *run) all() error {
	r.mu.Lock()
	r.advance()
	isOver := r.isOver()
	missing := 0
	for _, f := range r.found[r.done:] {
		if f == nil {
			missing++
		}
	}
	r.mu.Unlock()
	if isOver {
		return r.err
	}
	leave, err := r.enter(r.ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, stop := context.WithCancel(r.ctx)
	defer stop()
	onThreads(missing, func() {
		var err error
		defer func() {
			if err != nil {
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
			}
		}()
		defer storage.RecoverTo(&err)
		r.work(ctx, stop)
	})
	if err := r.ctx.Err(); err != nil && r.err == nil && !r.isOver() {
		r.err = err
	}
	return r.err
}

// enter waits until the search may read files.
func (s *Searcher) enter(ctx context.Context) (leave func(), err error) {
	leave = func() { <-s.running }
	select {
	case s.running <- struct{}{}:
		return leave, nil
	default:
	}
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > maxWaiting {
		return nil, ErrBusy
	}
	select {
	case s.running <- struct{}{}:
		return leave, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// work searches one file after the other.
func (r *run) work(ctx context.Context, stop func()) {
	w := &worker{run: r, checker: r.m.Checker()}
	for {
		i := r.take()
		if i < 0 {
			return
		}
		f := w.file(ctx, r.files[i])
		if ctx.Err() != nil {
			return // it may not have been searched to its end
		}
		r.read.Add(1)
		r.mu.Lock()
		r.found[i] = f
		r.advance()
		isOver := r.isOver()
		r.mu.Unlock()
		if isOver {
			stop()
			return
		}
	}
}

// take returns the number of the next file to be searched, -1 if there is none.
func (r *run) take() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.next < len(r.files) && r.found[r.next] != nil {
		r.next++
	}
	if r.next == len(r.files) || r.isOver() {
		return -1
	}
	r.next++
	return r.next - 1
}

// handedOn is in the place of what was handed on and need not be kept: without a limit that can be much.
var handedOn = &Found{}

// advance hands on what is found in files of which all before are searched. Callers must hold r.mu.
func (r *run) advance() {
	for r.done < len(r.files) && r.found[r.done] != nil && !r.isOver() {
		f := r.found[r.done]
		r.done++
		r.hits += len(f.Hits)
		if r.each != nil && r.err == nil {
			r.err = r.each(f)
			r.found[r.done-1] = handedOn
		}
	}
}

// isOver reports whether the rest does not matter. Callers must hold r.mu.
func (r *run) isOver() bool { return r.err != nil || r.hits > r.limit || r.done == len(r.files) }
