package sessioncore

import (
	"sync"
	"sync/atomic"

	"sessionfs/sessioncore/storage"
)

// Store hands out the sessions of a storage and bounds what is kept of them in memory.
type Store struct {
	storage storage.Storage
	clock   atomic.Int64 // counts acquisitions, to tell which session was used last

	mu       sync.Mutex // guards what follows
	sessions map[string]*Session
	kept     map[*Session]int // entries of the snapshot that each keeps
	entries  int              // their sum
}

const (
	// maxKept is how many sessions keep a snapshot and with it an open file.
	maxKept = 128
	// maxKeptEntries bounds the memory of kept snapshots, at about 100 bytes an entry. The session used
	// last keeps its own whatever its size.
	maxKeptEntries = 400_000
)

// NewStore returns the sessions of a storage.
func NewStore(files storage.Storage) *Store {
	return &Store{storage: files, sessions: map[string]*Session{}, kept: map[*Session]int{}}
}

// Storage returns where the sessions lie.
func (st *Store) Storage() storage.Storage { return st.storage }

// Session returns the session of a file, the same one each time. The file need not be there.
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

// cached notes that s keeps a snapshot of n entries, and lets the sessions used longest ago go.
func (st *Store) cached(s *Session, n int) {
	st.mu.Lock()
	st.entries += n - st.kept[s]
	st.kept[s] = n
	var victims []*Session
	for (len(st.kept) > maxKept || st.entries > maxKeptEntries) && len(st.kept) > 1 {
		var oldest *Session
		for k := range st.kept {
			if k != s && (oldest == nil || k.lastUsed.Load() < oldest.lastUsed.Load()) {
				oldest = k
			}
		}
		st.entries -= st.kept[oldest]
		delete(st.kept, oldest)
		victims = append(victims, oldest)
	}
	st.mu.Unlock()
	for _, v := range victims {
		v.evict()
	}
}

func (st *Store) dropped(s *Session) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.entries -= st.kept[s]
	delete(st.kept, s)
}

// evict lets go of the kept snapshot. A session that is being read just now keeps it; it reports again
// when it is done.
func (s *Session) evict() {
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	s.index = nil
	if old := s.current.Swap(nil); old != nil {
		old.Release()
	}
}

// Close lets go of all that is kept.
func (st *Store) Close() {
	st.mu.Lock()
	kept := st.kept
	st.kept, st.entries = map[*Session]int{}, 0
	st.mu.Unlock()
	for s := range kept {
		s.evict()
	}
}
