package search

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"

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
	// maxRemembered is of how many searches it is remembered what they found.
	maxRemembered = 16
)

// Sessions are those that a Searcher searches.
type Sessions struct {
	Files storage.Storage
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
	return &Searcher{
		Sessions: s, store: sessioncore.NewStore(s.Files), running: make(chan struct{}, maxRunning),
		held: s.Memory.Kept(),
	}
}

// FilesRead returns how many files were searched so far.
func (s *Searcher) FilesRead() int64 { return s.read.Load() }

// memo is what is remembered of a search, by file. It only saves reading files that are unchanged.
type memo struct {
	key   string
	lock  chan struct{} // guards found; held while files are searched for it
	found map[string]*Found
	size  int64   // guarded by Searcher.mu
	last  *Result // what was found last; guarded by Searcher.mu
}

// memo returns what is remembered for a key; the caller must give it back.
func (s *Searcher) memo(ctx context.Context, key string) (*memo, error) {
	s.mu.Lock()
	var m *memo
	for i, other := range s.remembered {
		if other.key == key {
			m = other
			s.remembered = append(s.remembered[:i], s.remembered[i+1:]...)
			break
		}
	}
	if m == nil {
		m = &memo{key: key, lock: make(chan struct{}, 1), found: map[string]*Found{}}
	}
	s.remembered = append(s.remembered, m)
	s.mu.Unlock()
	select {
	case m.lock <- struct{}{}:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Last returns what Look, or LookIn for a name, returned last for a matcher, nil if that is not remembered. Files may have
// changed since, and it may have been for another caller.
func (s *Searcher) Last(m Matcher, name string) *Result {
	key := keyOf(m, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, memo := range s.remembered {
		if memo.key == key {
			return memo.last
		}
	}
	return nil
}

// keyOf returns the key for what is remembered of a session, or of all of them if name is empty.
func keyOf(m Matcher, name string) string { return name + "\x00" + m.Key() }

// giveBack counts what a memo takes now, and forgets others where that is too much.
func (s *Searcher) giveBack(m *memo) {
	size := int64(0)
	for _, f := range m.found {
		size += f.size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.last != nil {
		size += int64(len(m.last.Hits)) * hitSize
	}
	m.size = size
	for {
		total := int64(0)
		for _, other := range s.remembered {
			total += other.size
		}
		if len(s.remembered) <= maxRemembered && s.held.Resize(total) == nil {
			break
		}
		if len(s.remembered) == 0 {
			break
		}
		s.remembered = s.remembered[1:]
	}
	<-m.lock
}

// Look returns what is found in all sessions.
func (s *Searcher) Look(ctx context.Context, m Matcher) (*Result, error) {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	return s.lookIn(ctx, m, keyOf(m, ""), files)
}

// LookIn returns what is found in one session.
func (s *Searcher) LookIn(ctx context.Context, m Matcher, name string) (*Result, error) {
	st, err := s.Files.Stat(name)
	if err != nil {
		return nil, err
	}
	return s.lookIn(ctx, m, keyOf(m, name), []file{{name, st}})
}

func (s *Searcher) lookIn(ctx context.Context, m Matcher, key string, files []file) (*Result, error) {
	memo, err := s.memo(ctx, key)
	if err != nil {
		return nil, err
	}
	defer s.giveBack(memo)
	run := s.newRun(ctx, m, files)
	for i := range run.files {
		if f := memo.found[run.files[i].name]; f.isOf(run.files[i].Stat) {
			run.found[i] = f
		}
	}
	err = run.all()
	found := run.found[:run.done]
	memo.update(files, run.found)
	if err != nil {
		return nil, err
	}
	r := newResult(found, run.limit)
	_, r.prompts = m.(*Touched)
	for _, f := range files {
		r.Modified = max(r.Modified, f.Modified)
	}
	s.mu.Lock()
	memo.last = r
	s.mu.Unlock()
	return r, nil
}

// update keeps what was known of the files that are there, and what was found now.
func (m *memo) update(files []file, found []*Found) {
	now := make(map[string]*Found, len(files))
	for _, f := range files {
		if old := m.found[f.name]; old.isOf(f.Stat) { // of files that the caller may not read, or that did not matter
			now[f.name] = old
		}
	}
	for _, f := range found {
		if f != nil {
			now[f.File] = f
		}
	}
	m.found = now
}

// Each calls f with what is found in each session, as soon as that is known of it and those before it, which were
// modified later.
func (s *Searcher) Each(ctx context.Context, m Matcher, f func(*Found) error) error {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return err
	}
	run := s.newRun(ctx, m, files)
	run.each = f
	return run.all()
}
