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
	// DefaultLimit is how many hits a search in the mount shows.
	DefaultLimit = 1000
	// maxRunning is how many searches read files at once. Each uses the memory's whole bandwidth.
	maxRunning = 2
	// maxRemembered is of how many searches it is remembered what they found.
	maxRemembered = 16
)

// Sessions are those that a Searcher searches.
type Sessions struct {
	Files storage.Files
	// Tree is where the sessions are in a mount; "" for sessions.
	Tree string
	// Agents returns whose they are: of several, each has the directory of its name; nil for sessions of nobody.
	Agents func() []string
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
	running *semaphore.Weighted
	read    atomic.Int64

	mu         sync.Mutex // guards what follows
	remembered *simplelru.LRU[string, *memo]
	held       budget.Hold
}

// Matcher says which entries are hits. Its methods are safe for concurrent use.
type Matcher interface {
	// Key tells matchers apart: those with equal keys have equal hits.
	Key() string
	// Needle returns what a session has on the line of every hit; nil if that is not known. ok is false if the session can
	// have no hits. agent is whose it is, and header reads its header.
	Needle(agent string, header func() (rawjson.Value, error)) (n *Needle, ok bool, err error)
	// Checker returns what checks the entries of a session with that header and title, or what stands for one; nil if it can have no hits.
	Checker(header rawjson.Value, title string) Checker
}

// Checker decides about entries. It is not safe for concurrent use.
type Checker interface {
	// Entry reports whether an entry is a hit, and returns what a Hit has of it: lines for people.
	Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool)
	// Title is Entry for a session's title in its header, which has that time.
	Title(title rawjson.Value, at time.Time) (line string, ok bool)
}

var (
	_ Matcher = (*Query)(nil)
	_ Matcher = (*Touched)(nil)
)

// New returns a Searcher.
func New(s Sessions) *Searcher {
	s.Tree = cmp.Or(s.Tree, "sessions")
	s.Limit = cmp.Or(s.Limit, math.MaxInt)
	searcher := &Searcher{
		Sessions: s, store: sessioncore.NewStore(s.Files), running: semaphore.NewWeighted(maxRunning),
		held: s.Memory.Kept(),
	}
	searcher.remembered, _ = simplelru.NewLRU[string, *memo](maxRemembered, nil)
	s.Memory.OnFull(searcher.forget)
	return searcher
}

// CheckAgent returns an error that wraps ErrQuery if a query is about an agent of which there are no sessions here.
func (s *Searcher) CheckAgent(q *Query) error {
	if q.agent == "" {
		return nil
	}
	if agents := s.agents(); !slices.Contains(agents, q.agent) {
		return q.wrong("agent: is %s here, not %q", strings.Join(agents, ", "), q.agent)
	}
	return nil
}

func (s *Searcher) agents() []string {
	if s.Agents == nil {
		return nil
	}
	return s.Agents()
}

// agentOf returns whose a session file is.
func (s *Searcher) agentOf(file string) string {
	agents := s.agents()
	if len(agents) == 1 {
		return agents[0]
	}
	first, _, _ := strings.Cut(file, "/")
	return first
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

// Count returns the sessions in which something is found, those that were modified last first, and those that could not be
// searched. It knows no limit.
func (s *Searcher) Count(ctx context.Context, m Matcher) (sessions []*Found, unread []*Found, err error) {
	files, err := sessionFiles(ctx, s.Files)
	if err != nil {
		return nil, nil, err
	}
	g := gathered{count: true}
	if err := s.each(ctx, m, files, nil, g.add); err != nil {
		return nil, nil, err
	}
	return g.sessions(), g.unread, nil
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
	g := gathered{limit: s.Limit}
	err := s.each(ctx, m, files, now.found, func(f *Found) bool {
		now.found[f.File] = f
		return g.add(f)
	})
	if err == nil {
		now.result = g.result()
		_, now.result.calls = m.(*Touched)
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

// each calls f with what is found in files, in their order, until that returns false. Files of which that is known are not
// read.
func (s *Searcher) each(ctx context.Context, m Matcher, files []file, known map[string]*Found, f func(*Found) bool) (err error) {
	var rest *reading
	defer func() {
		if rest != nil {
			rest.end()
			s.running.Release(1)
		}
	}()
	for i, at := range files {
		found := known[at.name]
		if found == nil {
			if rest == nil {
				if err := s.running.Acquire(ctx, 1); err != nil {
					return err
				}
				unknown := slices.DeleteFunc(slices.Clone(files[i:]), func(f file) bool { return known[f.name] != nil })
				rest = s.startReading(ctx, m, unknown)
			}
			if found, err = rest.next(); err != nil {
				return err
			}
		}
		if !f(found) {
			return nil
		}
	}
	return nil
}

// memo is what is remembered of a search. It only saves reading files that are unchanged. It does not change.
type memo struct {
	key    string
	found  map[string]*Found // by file
	result *Result           // what was found last; nil if nothing was
}

// keyOf returns the key for what is remembered of a session, or of all of them if name is empty.
func keyOf(m Matcher, name string) string { return name + "\x00" + m.Key() }

// memo returns what is remembered for a key.
func (s *Searcher) memo(key string) *memo {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.remembered.Get(key); ok {
		return m
	}
	return &memo{}
}

// Last returns what Search, or SearchIn for a name, returned last for a matcher, nil if that is not remembered. Files may
// have changed since.
func (s *Searcher) Last(m Matcher, name string) *Result { return s.memo(keyOf(m, name)).result }

// remember keeps a memo, and forgets others where that is too much.
func (s *Searcher) remember(m *memo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remembered.Add(m.key, m)
	for s.held.Resize(s.size()) != nil {
		s.remembered.RemoveOldest()
	}
}

// forget gives back all that is remembered.
func (s *Searcher) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remembered.Purge()
	s.held.Close()
}

// size is about how many bytes is remembered. Callers must hold s.mu.
func (s *Searcher) size() (n int64) {
	for _, m := range s.remembered.Values() {
		for _, f := range m.found {
			n += f.size()
		}
		if m.result != nil {
			n += int64(len(m.result.Hits)) * hitSize
		}
	}
	return n
}

// isOf reports whether it is what would be found in a file in that state.
func (f *Found) isOf(st storage.Stat) bool {
	return f != nil && f.Err == nil && f.token == st.Token && !st.Racy(f.readAt)
}

// hitSize is what a Hit takes besides its texts, in bytes.
const hitSize = 160

// size is about how many bytes it takes.
func (f *Found) size() int64 {
	n := int64(160 + len(f.File))
	for i := range f.Hits {
		n += int64(hitSize + len(f.Hits[i].Line) + len(f.Hits[i].Entry) + len(f.Hits[i].Prompt))
	}
	return n
}

// file is a session file, or what has the name of one.
type file struct {
	name string
	storage.Stat
}

// maxDepth is how deep directories of sessions are followed. Subagents' sessions lie beside those that called them.
const maxDepth = 32

// sessionFiles returns all session files of a storage, those that were modified last first. Directories that cannot be
// read are passed over, as in every listing of all sessions.
func sessionFiles(ctx context.Context, files storage.Files) (all []file, err error) {
	dirs := []string{""}
	for depth := 0; len(dirs) > 0 && depth < maxDepth; depth++ {
		lists := make([][]storage.StatItem, len(dirs))
		var listing errgroup.Group
		listing.SetLimit(runtime.GOMAXPROCS(0))
		for i, dir := range dirs {
			listing.Go(func() (err error) {
				defer storage.RecoverTo(&err)
				if err := ctx.Err(); err != nil {
					return err
				}
				lists[i], err = storage.ListStat(files, dir, mayHoldSessions)
				if dir == "" && !storage.IsMissing(err) {
					return err
				}
				return nil
			})
		}
		if err := listing.Wait(); err != nil {
			return nil, err
		}
		var below []string
		for i, dir := range dirs {
			for _, item := range lists[i] {
				name := path.Join(dir, item.Name)
				switch item.Kind {
				case storage.KindDir:
					below = append(below, name)
				case storage.KindFile:
					all = append(all, file{name, item.Stat})
				}
			}
		}
		dirs = below
	}
	slices.SortFunc(all, func(a, b file) int {
		return cmp.Or(cmp.Compare(b.Modified, a.Modified), cmp.Compare(path.Base(b.name), path.Base(a.name)), cmp.Compare(b.name, a.name))
	})
	return all, nil
}

func mayHoldSessions(item storage.Item) bool {
	return item.Kind == storage.KindDir ||
		item.Kind == storage.KindFile && item.Name[0] != '.' && strings.HasSuffix(item.Name, sessioncore.FileEnding)
}
