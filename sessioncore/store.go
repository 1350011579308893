package sessioncore

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"syscall"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
)

// Store hands out the sessions of a storage and bounds how much of them is kept in memory. It is safe for
// concurrent use.
type Store struct {
	storage givingBack
	program func(name string) program.Program
	keep    int // maximum number of sessions that keep a snapshot

	mu       sync.Mutex // guards the fields below
	sessions map[string]*Session
	kept     *simplelru.LRU[*Session, int] // number of entries of each session's snapshot
	entries  int                           // sum of kept
}

const (
	// maxKept is the maximum number of sessions that keep a snapshot and with it an open file, where there are
	// descriptors enough.
	maxKept = 128
	// maxKeptEntries bounds the memory of kept snapshots, at about 100 bytes per entry. The session used last keeps
	// its snapshot whatever its size.
	maxKeptEntries = 400_000
)

// NewStore returns a Store of the sessions in files.
func NewStore(files storage.Files) *Store {
	st := &Store{keep: keepable(), sessions: map[string]*Session{}}
	st.kept, _ = simplelru.NewLRU(math.MaxInt, func(_ *Session, n int) { st.entries -= n })
	st.storage, st.program = givingBack{files, st}, func(string) program.Program { return program.Unknown }
	return st
}

// Keep sets how many sessions keep a snapshot at most. It must be called before the store is used.
func (st *Store) Keep(sessions int) { st.keep = min(st.keep, sessions) }

// SetProgram sets who is asked whose agent directory a file is in. It must be called before the store is used.
func (st *Store) SetProgram(of func(name string) program.Program) { st.program = of }

// Program returns whose agent directory a file is in, as far as is known; "" for the storage's root.
func (st *Store) Program(name string) program.Program { return st.program(name) }

// Indexed returns how many sessions keep a snapshot.
func (st *Store) Indexed() int {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.kept.Len()
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

// Known returns the snapshot of a file in that state, nil if the file is not indexed. Callers must release it.
func (st *Store) Known(name string, t storage.Token) *Snapshot {
	st.mu.Lock()
	s := st.sessions[name]
	st.mu.Unlock()
	if s != nil {
		if snap := s.current.Load(); snap != nil && snap.stat.Token == t && snap.retain() {
			return snap
		}
	}
	return nil
}

// Probe is Session(name).Probe for a name that was asked for: one that is not there leaves nothing behind.
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

// cached records that s keeps a snapshot of n entries, and evicts the least recently used sessions if there are too
// many.
func (st *Store) cached(s *Session, n int) {
	st.mu.Lock()
	st.kept.Remove(s)
	st.kept.Add(s, n)
	st.entries += n
	var victims []*Session
	for (st.kept.Len() > st.keep || st.entries > maxKeptEntries) && st.kept.Len() > 1 {
		oldest, _, _ := st.kept.RemoveOldest()
		victims = append(victims, oldest)
	}
	st.mu.Unlock()
	for _, v := range victims {
		v.evict()
	}
}

// used records that s is used.
func (st *Store) used(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.kept.Get(s)
}

// dropped records that s no longer keeps a snapshot.
func (st *Store) dropped(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.kept.Remove(s)
}

// Close releases all snapshots that are kept.
func (st *Store) Close() { st.release(func(*Session) bool { return true }) }

// EvictIdle releases the snapshots that are kept and that nobody uses.
func (st *Store) EvictIdle() { st.release((*Session).isIdle) }

// EvictSession releases the snapshot of a session if nobody uses it.
func (st *Store) EvictSession(session *Session) {
	st.mu.Lock()
	isKept := session.isIdle() && st.kept.Remove(session)
	st.mu.Unlock()
	if isKept {
		session.evict()
	}
}

// IsCached reports whether a snapshot of the session is kept.
func (s *Session) IsCached() bool { return s.current.Load() != nil }

// isIdle reports whether nobody uses the snapshot that is kept.
func (s *Session) isIdle() bool {
	snap := s.current.Load()
	return snap == nil || snap.refs.Load() == 1
}

// CloseWithArtifacts releases those that are kept of a file and of those in the directory of its artifacts.
func (st *Store) CloseWithArtifacts(name string) {
	below := strings.TrimSuffix(name, FileEnding) + "/"
	st.release(func(s *Session) bool { return s.name == name || strings.HasPrefix(s.name, below) })
}

// release releases the kept snapshots of some sessions.
func (st *Store) release(which func(*Session) bool) {
	var released []*Session
	st.mu.Lock()
	for _, s := range st.kept.Keys() {
		if which(s) {
			st.kept.Remove(s)
			released = append(released, s)
		}
	}
	st.mu.Unlock()
	for _, s := range released {
		s.evict()
	}
}

// Snapshots that are kept hold an open file each. They must not use up the descriptors of the process.

// keptShare is which part of the process's descriptors kept snapshots may hold: one in so many. Readers and directories
// need the others.
const keptShare = 4

// keepable returns how many sessions may keep a snapshot.
func keepable() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return maxKept
	}
	return int(max(1, min(maxKept, uint64(limit.Cur)/keptShare)))
}

// givingBack is a storage that gives kept snapshots back when there are no descriptors left to open a file.
type givingBack struct {
	storage.Files
	store *Store
}

// Open implements storage.Files.
func (g givingBack) Open(name string) (storage.Object, error) {
	obj, err := g.Files.Open(name)
	if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
		g.store.Close()
		obj, err = g.Files.Open(name)
	}
	return obj, err
}
