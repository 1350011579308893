package search

import (
	"cmp"
	"context"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	// DefaultLimit is the number of hits that a search in the mount shows.
	DefaultLimit = 1000
	// maxRunning bounds the concurrent searches of files, as each uses all memory bandwidth.
	maxRunning = 2
	// maxMemos bounds the searches with cached results.
	maxMemos = 16
)

// SearchedSessions are the sessions of a Searcher.
type SearchedSessions struct {
	Files storage.Files
	// Tree is the directory of the sessions in a mount; "" for sessions.
	Tree string
	// Agents returns the agents of the sessions. Several have a directory each. May be nil.
	Agents func() []string
	// Memory counts the cache; nil has no limits.
	Memory *budget.Budget
	// Limit bounds the hits; 0 for all.
	Limit int
	// Within are absolute directories. If there are any, only sessions count that work in one of them or below
	// one. It is not changed once a search has begun.
	Within []string
}

// Searcher searches sessions. It is safe for concurrent use.
type Searcher struct {
	SearchedSessions
	// store is for the search alone, so that it evicts no sessions of others.
	store   *sessioncore.Store
	running *semaphore.Weighted
	read    atomic.Int64

	mu    sync.Mutex // guards the fields below
	memos *simplelru.LRU[string, *memo]
	hold  budget.Hold
}

// Matcher decides which entries are hits. Its methods are safe for concurrent use.
type Matcher interface {
	// Key identifies matchers: equal keys mean equal hits.
	Key() string
	// Needle returns a needle on the line of every hit, or nil. ok is false if the session can have
	// no hits. agent is its agent, and header reads its header.
	Needle(agent string, header func() (rawjson.Value, error)) (n *Needle, ok bool, err error)
	// Checker returns a checker for a session with a header and a title, nil if it can have no hits.
	Checker(header rawjson.Value, title string) Checker
}

// Checker decides about entries. It is not safe for concurrent use.
type Checker interface {
	// Entry reports whether an entry is a hit, and returns the Hit's lines for people.
	Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool)
	// Title is Entry for the title in a session's header of a time.
	Title(title rawjson.Value, at time.Time) (line string, ok bool)
}

var (
	_ Matcher = (*Query)(nil)
	_ Matcher = (*Touched)(nil)
)

// New returns a Searcher of sessions.
func New(s SearchedSessions) *Searcher {
	if s.Tree == "" {
		s.Tree = "sessions"
	}
	if s.Limit == 0 {
		s.Limit = math.MaxInt
	}
	if s.Agents == nil {
		s.Agents = func() []string { return nil }
	}
	searcher := &Searcher{
		SearchedSessions: s,
		store:            sessioncore.NewStore(s.Files),
		running:          semaphore.NewWeighted(maxRunning),
		hold:             s.Memory.Kept(),
	}
	searcher.memos, _ = simplelru.NewLRU[string, *memo](maxMemos, nil)
	s.Memory.OnFull(searcher.evict)
	return searcher
}

// CheckAgent returns an error that wraps ErrQuery for a query about an agent without sessions here, nil for
// one about any agent.
func (s *Searcher) CheckAgent(q *Query) error {
	if q.agent == "" || slices.Contains(s.Agents(), q.agent) {
		return nil
	}
	return q.wrong("agent: is %s here, not %q", strings.Join(s.Agents(), ", "), q.agent)
}

// agentOf returns the agent of a session file. If there are several, it is the file's first directory.
func (s *Searcher) agentOf(file string) string {
	agents := s.Agents()
	if len(agents) == 1 {
		return agents[0]
	}
	first, _, _ := strings.Cut(file, "/")
	return first
}

// FilesRead returns the number of files searched so far.
func (s *Searcher) FilesRead() int64 { return s.read.Load() }

// Search returns the hits in all sessions.
func (s *Searcher) Search(ctx context.Context, m Matcher) (*Result, error) {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	return s.searchFiles(ctx, m, keyOf(m, ""), files)
}

// SearchIn returns the hits in the session of this file name. The error wraps storage's for a missing file.
func (s *Searcher) SearchIn(ctx context.Context, m Matcher, name string) (*Result, error) {
	st, err := s.Files.Stat(name)
	if err != nil {
		return nil, err
	}
	file := searchedFile{name: name, Stat: st, hasOutputs: true} // it may: only a listing tells
	return s.searchFiles(ctx, m, keyOf(m, name), []searchedFile{file})
}

// Count returns the sessions with hits, the latest modified first, and unread ones, without limit.
func (s *Searcher) Count(ctx context.Context, m Matcher) (sessions []*FileHits, unread []*FileHits, err error) {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return nil, nil, err
	}
	g := hitCollector{count: true}
	_, isQuery := m.(*Query) // which needs only the words of a session, not its calls
	w := worker{
		s:      s,
		m:      m,
		counts: true,
		buffer: sessioncore.ConversionBuffer{Words: isQuery},
	}
	err = s.each(ctx, w, files, nil, g.add)
	if err != nil {
		return nil, nil, err
	}
	return g.sessions(), g.unread, nil
}

// searchFiles returns the hits in files, and caches them under key. It reads the files that changed since the
// cached result. After an error the cache has the files that were searched, and the result before.
func (s *Searcher) searchFiles(ctx context.Context, m Matcher, key string, files []searchedFile) (*Result, error) {
	known := s.memo(key)
	now := &memo{
		key:    key,
		found:  make(map[string]*FileHits, len(files)),
		result: known.result,
	}
	q, isQuery := m.(*Query)
	isLasting := !isQuery || !q.relative // the query means the same today
	for _, f := range files {
		found := known.found[f.name]
		if isLasting && found.isOf(f.Stat) {
			now.found[f.name] = found
		}
	}
	g := hitCollector{limit: s.Limit}
	err := s.each(ctx, worker{s: s, m: m}, files, now.found, func(f *FileHits) bool {
		now.found[f.File] = f
		return g.add(f)
	})
	if err != nil {
		s.remember(now)
		return nil, err
	}
	now.result = g.result()
	_, now.result.calls = m.(*Touched)
	for _, f := range files {
		now.result.Modified = max(now.result.Modified, f.Modified)
	}
	s.remember(now)
	return now.result, nil
}

// each calls f with the results of files, in their order, until it returns false. Workers like w search the
// files without a result in known, from the first such file on.
func (s *Searcher) each(
	ctx context.Context, w worker, files []searchedFile, known map[string]*FileHits, f func(*FileHits) bool,
) error {
	isKnown := func(f searchedFile) bool {
		return known[f.name] != nil
	}
	w.tables = newTableScans()
	var unknown *reading
	for i, file := range files {
		found := known[file.name]
		if found == nil && unknown == nil {
			err := s.running.Acquire(ctx, 1)
			if err != nil {
				return err
			}
			defer s.running.Release(1)
			unknown = startReading(ctx, w, slices.DeleteFunc(slices.Clone(files[i:]), isKnown))
			defer unknown.end()
		}
		if found == nil {
			var err error
			found, err = unknown.next()
			if err != nil {
				return err
			}
		}
		storage.Progress(ctx, i+1, len(files))
		if !f(found) {
			return nil
		}
	}
	return nil
}

// memo is the cached result of a search. It only saves reading unchanged files, and is immutable.
type memo struct {
	key    string
	found  map[string]*FileHits // by file
	result *Result              // the last one, or nil
}

// keyOf returns the cache key for a session, or for all of them if name is empty.
func keyOf(m Matcher, name string) string { return name + "\x00" + m.Key() }

// memo returns the cached result for a key, an empty one if there is none; not nil.
func (s *Searcher) memo(key string) *memo {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, isKnown := s.memos.Get(key)
	if isKnown {
		return m
	}
	return &memo{}
}

// Last returns the last cached result of SearchIn for the session of that name, or of Search for "", nil if
// there is none. Files may have changed since.
func (s *Searcher) Last(m Matcher, name string) *Result { return s.memo(keyOf(m, name)).result }

// remember caches a memo, and evicts the oldest ones beyond the limits, which may be all.
func (s *Searcher) remember(m *memo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memos.Add(m.key, m)
	for s.hold.Resize(s.size()) != nil {
		s.memos.RemoveOldest()
	}
}

// evict drops the cache.
func (s *Searcher) evict() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.memos.Purge()
	s.hold.Close()
}

// size is about the size of the cache in bytes. Callers must hold s.mu.
func (s *Searcher) size() (size int64) {
	for _, m := range s.memos.Values() {
		for _, f := range m.found {
			size += f.size()
		}
		if m.result != nil {
			size += int64(len(m.result.Hits)) * hitSize
		}
	}
	return size
}

// isOf reports whether f is the result of a file in a state, which a later change cannot look like. A failed
// search, or nil, is of no state.
func (f *FileHits) isOf(st storage.Stat) bool {
	if f == nil || f.Err != nil {
		return false
	}
	return f.token == st.Token && !st.Racy(f.readAt)
}

// The sizes of values without their texts, in bytes.
const (
	hitSize      = 144
	fileHitsSize = 176
	stringSize   = 16
)

// size is about the memory of the hits of a file in bytes.
func (f *FileHits) size() int64 {
	size := fileHitsSize + len(f.File) + len(f.Title)
	for i := range f.Hits {
		h := &f.Hits[i]
		size += hitSize + len(h.Line) + len(h.Entry) + len(h.Prompt)
		for _, call := range h.calls {
			size += stringSize + len(call)
		}
	}
	return int64(size)
}

// searchedFile is a file with a session's name.
type searchedFile struct {
	name string
	storage.Stat
	hasOutputs bool // it may have long results
}

// maxDepth bounds the depth of directories of sessions: subagents' lie below their callers'.
const maxDepth = 32

// sessionFiles returns all session files, the latest first. It skips unreadable directories, but the error of
// the root is returned, unless that is missing.
func sessionFiles(ctx context.Context, files storage.Files) ([]searchedFile, error) {
	l := fileLister{files: files, outputs: map[string]bool{}}
	l.running.SetLimit(runtime.GOMAXPROCS(0))
	err := l.list(ctx, "", 1)
	failed := l.running.Wait()
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	for i := range l.found {
		f := &l.found[i]
		f.hasOutputs = l.outputs[outputsOf(f.name)]
	}
	slices.SortFunc(l.found, searchedFile.compare)
	return l.found, nil
}

// fileLister lists the files of sessions in directories, several at a time.
type fileLister struct {
	files   storage.Files
	running errgroup.Group

	mu      sync.Mutex // guards the fields below
	found   []searchedFile
	outputs map[string]bool // the directories of long results
}

// list lists a directory and, up to maxDepth, those below, in other goroutines as far as the limit allows.
// depth counts from 1. The error is one of ctx, or of the root.
func (l *fileLister) list(ctx context.Context, dir string, depth int) (err error) {
	defer storage.RecoverTo(&err)
	err = ctx.Err()
	if err != nil {
		return err
	}
	items, err := storage.ListStat(l.files, dir, mayHoldSessions)
	if err != nil && dir == "" && !storage.IsMissing(err) {
		return err
	}
	for _, item := range items {
		name := path.Join(dir, item.Name)
		l.add(name, item)
		if item.Kind != storage.KindDir || depth == maxDepth {
			continue
		}
		below := func() error {
			return l.list(ctx, name, depth+1)
		}
		isStarted := l.running.TryGo(below)
		if isStarted {
			continue
		}
		err := below()
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds a file of a session, or a directory of long results.
func (l *fileLister) add(name string, item storage.StatItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if item.Kind == storage.KindFile {
		l.found = append(l.found, searchedFile{name: name, Stat: item.Stat})
	} else if item.Name == outputsDir {
		l.outputs[name] = true
	}
}

// compare puts the latest file first, of one time the one with the greatest name.
func (f searchedFile) compare(other searchedFile) int {
	order := cmp.Compare(other.Modified, f.Modified)
	if order == 0 {
		order = cmp.Compare(path.Base(other.name), path.Base(f.name))
	}
	if order == 0 {
		order = cmp.Compare(other.name, f.name)
	}
	return order
}

// mayHoldSessions reports whether a name is a directory, or a file of a session.
func mayHoldSessions(item storage.Item) bool {
	if item.Kind == storage.KindDir {
		return true
	}
	isHidden := item.Name[0] == '.'
	return item.Kind == storage.KindFile && !isHidden && strings.HasSuffix(item.Name, sessioncore.FileEnding)
}
