package sessioncore

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// Session is a session file, looked at whenever somebody asks: Acquire compares the file's state with
// that of the last snapshot and reads what changed.
type Session struct {
	store *Store
	name  string

	current  atomic.Pointer[Snapshot]
	probed   atomic.Pointer[probed]
	parent   atomic.Pointer[parentRef] // breadcrumb.go
	lastUsed atomic.Int64              // the store's clock when last acquired

	// mu is held while the file is read. It guards what follows. Lock order: Session.mu, Store.mu.
	mu     sync.Mutex
	index  *index
	resume position
	move   *leafMove // where the leaf was moved to in memory; nil: nowhere
}

const (
	// headCheck and tailCheck are how many bytes at both ends of what was indexed are compared before
	// growth is taken as growth, not as another file in the same place.
	headCheck = 4 << 10
	tailCheck = 4 << 10
	// raceWindow: a file changed this short before it was read may change again without its times
	// telling, since some kernels' clocks for files tick every 4 or 10 ms.
	raceWindow = 20 * time.Millisecond
	// readTries: how often reading is begun anew when the file is changed under it.
	readTries = 5
)

// Name returns the file's name in the storage.
func (s *Session) Name() string { return s.name }

// Acquire returns a snapshot of what the file is now; the caller gives it back with Release. Errors:
// ErrNotSession, fs.ErrNotExist, ErrNotRegular, those of the storage.
func (s *Session) Acquire() (*Snapshot, error) {
	cur := s.current.Load()
	st, err := s.store.storage.Stat(s.name)
	if err != nil {
		s.drop()
		return nil, err
	}
	if st.Kind != KindFile {
		s.drop()
		return nil, ErrNotRegular
	}
	s.lastUsed.Store(s.store.clock.Add(1))
	if cur != nil && cur.isOf(st) && cur.retain() {
		return cur, nil
	}
	return s.refresh(cur, st)
}

// isOf reports whether the snapshot shows the state that st tells of.
func (s *Snapshot) isOf(st Stat) bool {
	return s.stat == st && (s.stat.Modified < s.readAt-int64(raceWindow) || s.headUnchanged())
}

// headUnchanged looks at the one place that is overwritten without the file's size telling: the title
// slot. Only for files changed just before they were read.
func (s *Snapshot) headUnchanged() bool {
	if s.settled.Load() || s.header.slot == 0 {
		return true
	}
	now := time.Now().UnixNano()
	sum, err := hashAt(s.pin.obj, 0, min(headCheck, s.stat.Size))
	if err != nil || sum != s.headSum {
		return false
	}
	if s.stat.Modified < now-int64(raceWindow) {
		s.settled.Store(true)
	}
	return true
}

func hashAt(obj Object, off, n int64) (uint64, error) {
	var buf [headCheck]byte
	if err := readFull(obj, buf[:n], off); err != nil {
		return 0, err
	}
	return maphash.Bytes(hashSeed, buf[:n]), nil
}

// refresh reads the file, or what was added to it. seen is what it was just now, when cur was the current
// snapshot.
func (s *Session) refresh(cur *Snapshot, seen Stat) (*Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for try := range readTries {
		if try > 0 || s.current.Load() != cur { // another goroutine was faster
			if seen, err = s.store.storage.Stat(s.name); err != nil {
				break
			}
		}
		var snap *Snapshot
		if snap, err = s.readOnce(seen); err == nil {
			s.install(snap)
			return snap, nil
		}
		if !errors.Is(err, ErrStale) {
			break
		}
	}
	s.dropLocked()
	return nil, err
}

// readOnce returns a snapshot with one reference for the caller.
func (s *Session) readOnce(st Stat) (*Snapshot, error) {
	if st.Kind != KindFile {
		return nil, ErrNotRegular
	}
	cur := s.current.Load()
	if cur != nil && cur.isOf(st) && cur.retain() {
		return cur, nil
	}
	if cur != nil && s.index != nil && cur.stat.SameObject(st.Token) && cur.retain() {
		defer cur.Release()
		if snap, ok, err := s.grow(cur); ok || err != nil {
			return snap, err
		}
	}
	return s.readWhole()
}

// readWhole indexes the file from its start.
func (s *Session) readWhole() (*Snapshot, error) {
	obj, err := s.store.storage.Open(s.name)
	if err != nil {
		return nil, err
	}
	p := newPin(obj)
	snap, err := s.indexWhole(p)
	if err != nil {
		p.release()
		return nil, err
	}
	return snap, nil
}

func (s *Session) indexWhole(p *pin) (*Snapshot, error) {
	readAt := time.Now()
	st, err := p.obj.Stat()
	if err != nil {
		return nil, err
	}
	x := newIndex()
	resume, err := load(context.Background(), p.obj, position{}, st.Size, x.add)
	if err != nil {
		return nil, err
	}
	if !x.header.found {
		return nil, ErrNotSession
	}
	return s.finish(x, resume, p, st, readAt, nil)
}

func newIndex() *index {
	return &index{symbols: newSymbolTable(), transcript: &transcriptSizes{}, usage: &usageRecords{}}
}

// grow indexes what was added to the file of a snapshot. ok is false where the file has to be read as
// a whole.
func (s *Session) grow(cur *Snapshot) (snap *Snapshot, ok bool, err error) {
	readAt := time.Now()
	st, err := cur.pin.obj.Stat()
	if err != nil {
		return nil, false, err
	}
	if !st.SameObject(cur.stat.Token) || st.Size <= cur.stat.Size || s.resume.guessed || !s.endsUnchanged(cur) {
		return nil, false, nil
	}
	from, ok, err := s.growthStart(cur, st.Size)
	if !ok || err != nil {
		return nil, false, err
	}
	s.index.forgetProblems(from.off)
	resume, err := load(context.Background(), cur.pin.obj, from, st.Size, s.index.add)
	if err != nil {
		s.index = nil // it may have taken a part
		return nil, false, err
	}
	cur.pin.refs.Add(1)
	snap, err = s.finish(s.index, resume, cur.pin, st, readAt, cur)
	if err != nil {
		s.index = nil // it has what no snapshot shows
		cur.pin.release()
	}
	return snap, err == nil, err
}

// endsUnchanged compares both ends of what was indexed.
func (s *Session) endsUnchanged(cur *Snapshot) bool {
	head, err := hashAt(cur.pin.obj, 0, min(headCheck, cur.stat.Size))
	if err != nil || head != cur.headSum {
		return false
	}
	if cur.headCoversHeader() {
		tail, err := cur.hashTail()
		return err == nil && tail == cur.ends[1]
	}
	ends, err := cur.hashEnds()
	return err == nil && ends == cur.ends
}

// headCoversHeader reports whether the header lies within the bytes that headSum is of.
func (s *Snapshot) headCoversHeader() bool {
	return s.header.off+s.header.size <= min(headCheck, s.stat.Size)
}

// growthStart returns where to go on. After a last line without its newline, the growth must begin
// with the end of that line, for else the line's value is another one now.
func (s *Session) growthStart(cur *Snapshot, size int64) (position, bool, error) {
	from := s.resume
	if !from.midLine {
		return from, true, nil
	}
	var b [1]byte
	for ; from.off < size; from.off++ {
		if err := readFull(cur.pin.obj, b[:], from.off); err != nil {
			return from, false, err
		}
		switch b[0] {
		case ' ', '\t', '\r':
		case '\n':
			from.off++
			from.lines++
			from.midLine = false
			return from, true, nil
		default:
			return from, false, nil
		}
	}
	return from, false, nil
}

// finish makes the snapshot and notes what the next refresh needs. grown, where not nil, is the snapshot that
// the file grew from, whose beginning was found unchanged.
func (s *Session) finish(x *index, resume position, p *pin, st Stat, readAt time.Time, grown *Snapshot) (*Snapshot, error) {
	snap := x.view(p, st)
	snap.readAt = readAt.UnixNano()
	var err error
	if grown != nil && grown.stat.Size >= headCheck {
		snap.headSum, snap.ends[0] = grown.headSum, grown.ends[0]
		snap.ends[1], err = snap.hashTail()
	} else if snap.headSum, err = hashAt(p.obj, 0, min(headCheck, st.Size)); err == nil {
		snap.ends, err = snap.hashEnds()
	}
	if err != nil {
		return nil, err
	}
	s.index, s.resume = x, resume
	s.takeMove(snap)
	return snap, nil
}

// install makes snap the current snapshot, with a reference of its own.
func (s *Session) install(snap *Snapshot) {
	if old := s.current.Load(); old != snap {
		snap.Retain()
		s.current.Store(snap)
		if old != nil {
			old.Release()
		}
	}
	s.store.cached(s, len(snap.records))
}

// drop lets go of what is cached, where the file is no session any more.
func (s *Session) drop() {
	if s.current.Load() == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropLocked()
}

func (s *Session) dropLocked() {
	s.index = nil
	if old := s.current.Swap(nil); old != nil {
		old.Release()
		s.store.dropped(s)
	}
}
