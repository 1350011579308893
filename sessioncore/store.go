package sessioncore

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/sessioncore/storage"
)

// Store hands out the sessions of a storage and bounds their memory. It is safe for concurrent use.
type Store struct {
	storage evictingFiles
	program func(name string) Program
	keep    int // maximum number of cached snapshots

	mu       sync.Mutex // guards the fields below
	sessions map[string]*Session
	cached   *simplelru.LRU[*Session, int] // weight of each session's snapshot
	entries  int                           // sum over cached
}

const (
	// maxCached bounds the cached snapshots, each with an open file, if descriptors suffice.
	maxCached = 128
	// maxCachedEntries bounds the memory of cached snapshots, at about entrySize bytes per entry. The
	// snapshot used last stays, whatever its size.
	maxCachedEntries = 400_000
	entrySize        = 100
)

// weight returns the memory of a snapshot, as a number of entries of the usual size.
func (s *Snapshot) weight() int {
	texts := len(s.symbols.arena) + s.labelBytes
	return max(len(s.records), texts/entrySize)
}

// NewStore returns a Store of the sessions in files.
func NewStore(files storage.Files) *Store {
	st := &Store{keep: snapshotLimit(), sessions: map[string]*Session{}}
	st.cached, _ = simplelru.NewLRU(math.MaxInt, func(_ *Session, n int) {
		st.entries -= n
	})
	st.storage = evictingFiles{Files: files, store: st}
	st.program = func(string) Program {
		return ByUnknown
	}
	return st
}

// Keep bounds the number of cached snapshots. It must be called before the store is used.
func (st *Store) Keep(sessions int) { st.keep = min(st.keep, sessions) }

// SetProgram sets the function that returns the owner of a file's agent directory. It must be
// called before the store is used.
func (st *Store) SetProgram(of func(name string) Program) { st.program = of }

// Program returns the owner of a file's agent directory, if known; "" stands for the root.
func (st *Store) Program(name string) Program { return st.program(name) }

// Indexed returns the number of cached snapshots.
func (st *Store) Indexed() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.cached.Len()
}

// Storage returns the storage that holds the sessions.
func (st *Store) Storage() storage.Files { return st.storage.Files }

// Session returns the session of a file, the same one on each call. The file need not exist.
func (st *Store) Session(name string) *Session {
	st.mu.Lock()
	defer st.mu.Unlock()
	s := st.sessions[name]
	if s == nil {
		s = &Session{store: st, name: name}
		st.sessions[name] = s
	}
	return s
}

// Known returns the cached snapshot of a file in a state, nil if there is none. It reads nothing.
// Callers must release the snapshot.
func (st *Store) Known(name string, state storage.Token) *Snapshot {
	st.mu.Lock()
	s := st.sessions[name]
	st.mu.Unlock()
	if s == nil {
		return nil
	}
	snap := s.current.Load()
	if snap != nil && snap.stat.Token == state && snap.retain() {
		return snap
	}
	return nil
}

// Probe is Session(name).Probe for any name: a missing file leaves nothing in memory.
func (st *Store) Probe(ctx context.Context, name string) (storage.Stat, error) {
	st.mu.Lock()
	s := st.sessions[name]
	st.mu.Unlock()
	if s == nil {
		stat, err := st.storage.Stat(name)
		if err == nil && stat.Kind != storage.KindFile {
			err = storage.ErrNotRegular
		}
		if err != nil {
			return storage.Stat{}, err
		}
		s = st.Session(name)
	}
	return s.Probe(ctx)
}

// addCached records the snapshot of s with a weight, and evicts the least recently used ones. It must
// be called without st.mu.
func (st *Store) addCached(s *Session, weight int) {
	st.mu.Lock()
	st.cached.Remove(s) // which subtracts the weight of the snapshot before
	st.cached.Add(s, weight)
	st.entries += weight
	var victims []*Session
	for st.cached.Len() > 1 {
		isFull := st.cached.Len() > st.keep || st.entries > maxCachedEntries
		if !isFull {
			break
		}
		oldest, _, _ := st.cached.RemoveOldest()
		victims = append(victims, oldest)
	}
	st.mu.Unlock()
	for _, victim := range victims { // without the lock, as it closes files
		victim.evict()
	}
}

// touch makes s the most recently used session.
func (st *Store) touch(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.cached.Get(s)
}

// removeCached records that s caches no snapshot.
func (st *Store) removeCached(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.cached.Remove(s)
}

// Close releases all cached snapshots.
func (st *Store) Close() {
	st.release(func(*Session) bool {
		return true
	})
}

// EvictIdle releases the cached snapshots without users.
func (st *Store) EvictIdle() { st.release((*Session).isIdle) }

// EvictSession releases the cached snapshot of a session if it has no users.
func (st *Store) EvictSession(session *Session) {
	st.mu.Lock()
	wasCached := session.isIdle() && st.cached.Remove(session)
	st.mu.Unlock()
	if wasCached {
		session.evict()
	}
}

// IsCached reports whether a snapshot of the session is cached.
func (s *Session) IsCached() bool { return s.current.Load() != nil }

// isIdle reports whether the cached snapshot has no users, also if none is cached.
func (s *Session) isIdle() bool {
	snap := s.current.Load()
	return snap == nil || snap.refs.Load() == 1
}

// CloseWithArtifacts releases the cached snapshots of a file and of its artifacts.
func (st *Store) CloseWithArtifacts(name string) {
	below := strings.TrimSuffix(name, FileEnding) + "/"
	st.release(func(s *Session) bool {
		return s.name == name || strings.HasPrefix(s.name, below)
	})
}

// release releases the cached snapshots of matching sessions.
func (st *Store) release(matches func(*Session) bool) {
	var released []*Session
	st.mu.Lock()
	for _, s := range st.cached.Keys() {
		if matches(s) {
			st.cached.Remove(s)
			released = append(released, s)
		}
	}
	st.mu.Unlock()
	for _, s := range released {
		s.evict()
	}
}

// cachedShare bounds the descriptors of cached snapshots to a fourth of the process's: readers and
// directories need the others.
const cachedShare = 4

// snapshotLimit returns the maximum number of cached snapshots, by the process's limit of descriptors.
func snapshotLimit() int {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err != nil {
		return maxCached
	}
	share := min(maxCached, uint64(limit.Cur)/cachedShare)
	return int(max(1, share))
}

// evictingFiles is a storage that evicts cached snapshots when descriptors run out.
type evictingFiles struct {
	storage.Files
	store *Store
}

// Open implements storage.Files. Without a descriptor left it evicts all snapshots and tries once more.
func (files evictingFiles) Open(name string) (storage.Object, error) {
	obj, err := files.Files.Open(name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		files.store.Close()
		obj, err = files.Files.Open(name)
	}
	return obj, err
}
