package search

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// ErrBusy means that too many searches wait already.
var ErrBusy = errors.New("too many searches at once; try again")

const (
	// DefaultLimit is how many hits a search in the mount shows.
	DefaultLimit = 1000
	// maxRunning is how many searches read files at once. Each uses the memory's whole bandwidth.
	maxRunning = 2
	// maxWaiting is how many searches wait for those.
	maxWaiting = 32
	// maxWorkers is how many files a search reads at once. More do not read memory faster.
	maxWorkers = 8
	// maxRemembered is of how many searches it is remembered what they found.
	maxRemembered = 16
)

// Sessions are those that a Searcher searches.
type Sessions struct {
	Files storage.Files
	// Tree is where the sessions are in a mount; "" for sessions.
	Tree string
	// Memory counts what is remembered; nil has no limits.
	Memory *budget.Budget
	// Limit is how many hits are looked for; 0 for all.
	Limit int
}

// Searcher searches sessions. It is safe for concurrent use.
type Searcher struct {
	Sessions
	// store is for the search alone: it must not take the place of sessions that somebody reads.
	store   *sessioncore.Store
	running chan struct{}
	waiting atomic.Int32
	read    atomic.Int64

	mu         sync.Mutex // guards what follows
	remembered []*memo    // the one used last is the last
	held       budget.Hold
}

// New returns a Searcher.
func New(s Sessions) *Searcher {
	s.Tree = cmp.Or(s.Tree, "sessions")
	s.Limit = cmp.Or(s.Limit, math.MaxInt)
	return &Searcher{
		Sessions: s, store: sessioncore.NewStore(s.Files), running: make(chan struct{}, maxRunning),
		held: s.Memory.Kept(),
	}
}

// FilesRead returns how many files were searched so far.
func (s *Searcher) FilesRead() int64 { return s.read.Load() }

// Search returns what is found in all sessions.
func (s *Searcher) Search(ctx context.Context, m Matcher) (*Result, error) {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	return s.searchFiles(ctx, m, keyOf(m, ""), files)
}

// SearchIn returns what is found in one session.
func (s *Searcher) SearchIn(ctx context.Context, m Matcher, name string) (*Result, error) {
	st, err := s.Files.Stat(name)
	if err != nil {
		return nil, err
	}
	return s.searchFiles(ctx, m, keyOf(m, name), []file{{name, st}})
}

// Each calls f with what is found in each session, as soon as that is known of it and those before it, which were
// modified later.
func (s *Searcher) Each(ctx context.Context, m Matcher, f func(*Found) error) error {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return err
	}
	return s.each(ctx, m, files, nil, f)
}

// searchFiles returns what is found in files, and remembers it.
func (s *Searcher) searchFiles(ctx context.Context, m Matcher, key string, files []file) (*Result, error) {
	known := s.memo(key)
	now := &memo{key: key, found: make(map[string]*Found, len(files)), result: known.result}
	for _, f := range files {
		if found := known.found[f.name]; found.isOf(f.Stat) {
			now.found[f.name] = found
		}
	}
	var found []*Found
	err := s.each(ctx, m, files, now.found, func(f *Found) error {
		found = append(found, f)
		return nil
	})
	for _, f := range found {
		now.found[f.File] = f
	}
	if err == nil {
		now.result = newResult(found, s.Limit)
		_, now.result.prompts = m.(*Touched)
		for _, f := range files {
			now.result.Modified = max(now.result.Modified, f.Modified)
		}
	}
	s.remember(now)
	if err != nil {
		return nil, err
	}
	return now.result, nil
}

// each calls f with what is found in files, in their order, until there are more hits than the limit. Files of which
// that is known are not read.
func (s *Searcher) each(ctx context.Context, m Matcher, files []file, known map[string]*Found, f func(*Found) error) error {
	q := &queue{files: files, found: make([]*Found, len(files)), left: s.Limit, each: f}
	missing := 0
	for i, f := range files {
		if q.found[i] = known[f.name]; q.found[i] == nil {
			missing++
		}
	}
	if err := q.handOn(); err != nil || q.isOver() {
		return err
	}
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	workers, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), maxWorkers, missing) {
		workers.Go(func() (err error) {
			defer storage.RecoverTo(&err)
			return s.work(ctx, m, q)
		})
	}
	if err := workers.Wait(); err != errEnough {
		return err
	}
	return nil
}

// work searches one file of q after the other.
func (s *Searcher) work(ctx context.Context, m Matcher, q *queue) error {
	w := &worker{s: s, m: m, checker: m.Checker()}
	for i := q.next(); i >= 0; i = q.next() {
		f := w.file(ctx, q.files[i])
		if err := ctx.Err(); err != nil {
			return err // it may not have been searched to its end
		}
		s.read.Add(1)
		if err := q.put(i, f); err != nil {
			return err
		}
	}
	return nil
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

// queue has the files of a search, and hands on what its workers find in them.
type queue struct {
	files []file
	each  func(*Found) error

	mu    sync.Mutex // guards what follows; held while each is called
	found []*Found   // of files; nil for those that were not searched
	taken int        // up to here all files are searched, or a worker has them
	done  int        // up to here all files are handed on
	left  int        // how many hits may follow; less than 0 ends the search
}

// errEnough ends the workers.
var errEnough = errors.New("enough is found")

// next returns the number of a file to be searched, -1 if there is none.
func (q *queue) next() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	for ; q.taken < len(q.files) && q.left >= 0; q.taken++ {
		if q.found[q.taken] == nil {
			q.taken++
			return q.taken - 1
		}
	}
	return -1
}

// put takes what was found in a file. The error is that of each, or errEnough.
func (q *queue) put(i int, f *Found) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.found[i] = f
	if err := q.handOn(); err != nil {
		return err
	}
	if q.left < 0 {
		return errEnough
	}
	return nil
}

// handOn hands on what is found in files of which all before are searched. Callers must hold q.mu, if others have q.
func (q *queue) handOn() error {
	for !q.isOver() && q.found[q.done] != nil {
		f := q.found[q.done]
		q.found[q.done] = handedOn
		q.done++
		q.left -= len(f.Hits)
		if err := q.each(f); err != nil {
			q.left = -1
			return err
		}
	}
	return nil
}

// handedOn is in the place of what need not be kept any more: without a limit that can be much.
var handedOn = &Found{}

func (q *queue) isOver() bool { return q.left < 0 || q.done == len(q.files) }
