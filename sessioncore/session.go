package sessioncore

import (
	"context"
	"errors"
	"hash/maphash"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// Session is a session file. Acquire compares the file's state with the last snapshot and reads the
// changes. A Session is safe for concurrent use.
type Session struct {
	store *Store
	name  string

	current   atomic.Pointer[Snapshot]
	lastProbe atomic.Pointer[probeResult]
	file      atomic.Pointer[storage.Token] // when it was last read or written; see IsFile
	readers   storage.Waiters               // for the file to be read

	// mu guards the field below and additions to the index of current. It is held while the file is
	// read. Lock order: Session.mu, Store.mu.
	mu   sync.Mutex
	move *leafMove // position of the leaf in memory; nil if there is none
}

// readTries bounds the attempts at reading a file that changes meanwhile.
const readTries = 5

// Name returns the file's name in the storage.
func (s *Session) Name() string { return s.name }

// Acquire returns a snapshot of the current file. Callers must call its Release. The error wraps
// ErrNotSession, fs.ErrNotExist, storage.ErrNotRegular, or another error of the storage.
//
// When ctx is done, the error comes from ctx, and reading goes on only if other callers wait for
// it.
func (s *Session) Acquire(ctx context.Context) (*Snapshot, error) {
	cur := s.current.Load()
	statAt := time.Now()
	st, err := s.store.storage.Stat(s.name)
	if err != nil {
		s.Drop()
		return nil, err
	}
	if st.Kind != storage.KindFile {
		s.Drop()
		return nil, storage.ErrNotRegular
	}
	s.store.touch(s)
	if cur != nil && cur.isOf(st) && cur.retain() {
		return cur, nil
	}
	return s.refresh(ctx, cur, st, statAt)
}

// isOf reports whether the snapshot shows the state st of the file. Equal states prove that only if the
// file's times could not hide a change.
func (s *Snapshot) isOf(st storage.Stat) bool {
	if s.stat != st || s.index.overwritten.Load() {
		return false
	}
	return !s.stat.Racy(s.readAt) || s.headUnchanged()
}

// headUnchanged compares the title slot, the only part of a file that is overwritten in place. It
// reads until the file's times can hide no further change; from then on it reports true at once.
func (s *Snapshot) headUnchanged() bool {
	if s.settled.Load() || s.header.slot == 0 {
		return true
	}
	now := time.Now().UnixNano()
	head, err := s.hashHead(s.index.file)
	if err != nil || head != s.head {
		return false
	}
	if !s.stat.Racy(now) {
		s.settled.Store(true)
	}
	return true
}

// refresh reads the file or its growth. st is a Stat from statAt or later, while cur was current; cur
// may be nil. A long read is shared by all callers that wait for it, and ends when none is left.
func (s *Session) refresh(ctx context.Context, cur *Snapshot, st storage.Stat, statAt time.Time) (*Snapshot, error) {
	isShort := cur != nil && cur.toRead(st) <= longRead
	if isShort && s.mu.TryLock() {
		defer s.mu.Unlock()
		return s.refreshLocked(context.Background(), cur, st, statAt) // cheaper than joining
	}
	read := func() (*Snapshot, error) {
		leave := s.readers.Join(ctx)
		defer leave()
		s.mu.Lock()
		defer s.mu.Unlock()
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		work, done := s.readers.Work()
		defer done()
		return s.refreshLocked(work, cur, st, statAt)
	}
	return storage.Await(ctx, read, (*Snapshot).Release)
}

// refreshLocked is refresh for callers that hold s.mu. It makes the new snapshot the current one, or on
// an error drops the current one. A file that changes while it is read is read again, up to readTries
// times.
func (s *Session) refreshLocked(
	ctx context.Context, cur *Snapshot, st storage.Stat, statAt time.Time,
) (*Snapshot, error) {
	var err error
	for try := range readTries {
		if try > 0 || s.current.Load() != cur { // another goroutine was faster
			statAt = time.Now()
			st, err = s.store.storage.Stat(s.name)
			if err != nil {
				break
			}
		}
		var snap *Snapshot
		snap, err = s.readOnce(ctx, st, statAt)
		if err == nil {
			s.install(snap)
			return snap, nil
		}
		if !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	s.Drop()
	return nil, err
}

// longRead is the size in bytes of a read that callers share and may leave: some milliseconds.
const longRead = 4 << 20

// toRead returns the number of bytes to read for the state st of a file. s may be nil.
func (s *Snapshot) toRead(st storage.Stat) int64 {
	if s == nil || !s.stat.SameObject(st.Token) || st.Size <= s.stat.Size {
		return st.Size
	}
	return st.Size - s.stat.Size
}

// readOnce returns a snapshot of the state st with one reference for the caller: the current one if it
// shows that state, else one of the growth or of the whole file. The error wraps storage.ErrStale if
// the file changed meanwhile. Callers must hold s.mu.
func (s *Session) readOnce(ctx context.Context, st storage.Stat, statAt time.Time) (*Snapshot, error) {
	if st.Kind != storage.KindFile {
		return nil, storage.ErrNotRegular
	}
	cur := s.current.Load()
	if cur != nil && cur.isOf(st) && cur.retain() {
		return cur, nil
	}
	mayGrow := cur != nil && !cur.index.overwritten.Load() && cur.stat.SameObject(st.Token)
	if mayGrow && cur.retain() {
		defer cur.Release()
		snap, hasGrown, err := s.grow(ctx, cur, st, statAt)
		if hasGrown || err != nil {
			return snap, err
		}
	}
	return s.readAll(ctx)
}

// readAll indexes the file from its start. The snapshot keeps the file open; on an error it is closed.
// Callers must hold s.mu.
func (s *Session) readAll(ctx context.Context) (_ *Snapshot, err error) {
	file, err := s.store.storage.Open(s.name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	x, f, err := indexOf(ctx, file)
	if err != nil {
		return nil, err
	}
	return s.snapshotOf(x, f), nil
}

// indexOf returns the index of an open file, and the file's fingerprints.
func indexOf(ctx context.Context, file storage.Object) (*index, fingerprints, error) {
	readAt := time.Now()
	st, err := storage.StatUntil(ctx, file)
	if err != nil {
		return nil, fingerprints{}, err
	}
	x := newIndex(file)
	x.resume, err = jsonl.Load(ctx, file, jsonl.Position{}, st.Size, x.add)
	if err != nil {
		return nil, fingerprints{}, err
	}
	if !x.header.found {
		return nil, fingerprints{}, ErrNotSession
	}
	f, err := fingerprintsOf(file, file, st, readAt, nil)
	return x, f, err
}

// snapshotOf returns a snapshot of an index, with the position of the leaf in memory if no entry
// was added since. Callers must hold s.mu.
func (s *Session) snapshotOf(x *index, f fingerprints) *Snapshot {
	snap := x.view(s.store.Program(s.name))
	snap.fingerprints = f
	if s.move != nil && !s.move.isCurrent(snap) {
		s.move = nil
	}
	snap.move = s.move
	return snap
}

// TakeReadingPeak returns the most bytes that long lines took while indexing since the last call.
func TakeReadingPeak() int64 { return jsonl.TakePeak() }

// grow indexes the growth of a snapshot's file. st is a Stat taken at statAt or later. ok is false
// if the file must be read as a whole. Callers must hold s.mu.
func (s *Session) grow(
	ctx context.Context, cur *Snapshot, st storage.Stat, statAt time.Time,
) (snap *Snapshot, ok bool, err error) {
	x := cur.index
	hasGrown := st.Size > cur.stat.Size
	if !hasGrown || x.resume.Guessed { // a guess about a torn value may prove wrong by what follows
		return nil, false, nil
	}
	w, err := jsonl.NewWindow(x.file, max(cur.stat.Size-tailCheck, 0), st.Size)
	if err != nil {
		return nil, false, nil // reading the file as a whole reports the error
	}
	if !cur.match(x.file, w) {
		return nil, false, nil
	}
	from, ok, err := growthStart(x.resume, w, st.Size)
	if !ok || err != nil {
		return nil, false, err
	}
	x.forgetProblems(from.Off)
	known := Entry(len(x.records))
	x.resume, err = jsonl.Load(ctx, w, from, st.Size, x.add)
	if err != nil {
		x.overwritten.Store(true) // it may hold entries that no snapshot shows
		return nil, false, err
	}
	f, err := fingerprintsOf(x.file, w, st, statAt, &cur.fingerprints)
	if err != nil {
		x.overwritten.Store(true)
		return nil, false, err
	}
	x.confirmed.setGrowth(st.Token, known)
	return s.snapshotOf(x, f), true, nil
}

// growthStart returns the start of the next load, by the end of the last one and the file's size in
// bytes. If the last line has no newline, the growth must begin with the end of that line; otherwise
// the line's value has changed, and ok is false.
func growthStart(end jsonl.Position, obj io.ReaderAt, size int64) (start jsonl.Position, ok bool, err error) {
	start = end
	if !end.MidLine {
		return start, true, nil
	}
	var char [1]byte // it is mostly the newline alone that is read
	for start.Off < size {
		err = storage.ReadFull(obj, char[:], start.Off)
		if err != nil {
			return start, false, err
		}
		start.Off++
		switch char[0] {
		case ' ', '\t', '\r': // may stand behind a value
		case '\n':
			start.Lines++
			start.MidLine = false
			return start, true, nil
		default:
			return start, false, nil
		}
	}
	return start, false, nil
}

// SetFile records which file the session is.
func (s *Session) SetFile(t storage.Token) { s.file.Store(&t) }

// IsFile reports whether a file, under any name, is the session's file as last read or written. It is
// false for a session that was neither.
func (s *Session) IsFile(t storage.Token) bool {
	last := s.file.Load()
	return last != nil && last.SameObject(t)
}

// install makes snap the current snapshot and adds a reference for that. The store counts it, and may
// evict others.
func (s *Session) install(snap *Snapshot) {
	snap.Retain()
	s.SetFile(snap.stat.Token)
	old := s.current.Swap(snap)
	if old != nil {
		old.Release()
	}
	s.store.addCached(s, snap.weight())
}

// Drop releases the cached snapshot, as the file is no longer a session.
func (s *Session) Drop() {
	if s.current.Load() != nil {
		s.store.removeCached(s)
		s.evict()
	}
}

// evict releases the current snapshot. A snapshot that is installed at the same time may be
// released although the store counts it, never the other way round.
func (s *Session) evict() {
	old := s.current.Swap(nil)
	if old != nil {
		old.Release()
	}
}

// fingerprints identify the beginning of a file that may have grown.
type fingerprints struct {
	stat       storage.Stat
	readAt     int64 // when stat was taken, ns since the epoch, or earlier
	head, tail uint64
	endsLine   bool // the indexed part is empty or ends in a newline
}

const (
	// headCheck and tailCheck are the numbers of bytes at both ends of the indexed part that
	// distinguish growth from another file of the same name.
	headCheck = 4 << 10
	tailCheck = 4 << 10
)

// fingerprintsOf hashes both ends of a file in the state stat, taken at statAt or later. It reads
// the last bytes from tail. If earlier is not nil, the file's head was just compared with it.
func fingerprintsOf(
	file, tail io.ReaderAt, stat storage.Stat, statAt time.Time, earlier *fingerprints,
) (f fingerprints, err error) {
	f = fingerprints{stat: stat, readAt: statAt.UnixNano()}
	if earlier != nil && earlier.stat.Size >= headCheck {
		f.head = earlier.head
	} else {
		f.head, err = f.hashHead(file)
		if err != nil {
			return f, err
		}
	}
	f.tail, err = f.hashTail(tail)
	if err != nil {
		return f, err
	}
	f.endsLine, err = storage.EndsInNewline(tail, stat.Size)
	return f, err
}

// match reports whether both ends of the indexed part are unchanged. tail has the last bytes.
func (f *fingerprints) match(file, tail io.ReaderAt) bool {
	head, err := f.hashHead(file)
	if err != nil || head != f.head {
		return false
	}
	end, err := f.hashTail(tail)
	return err == nil && end == f.tail
}

// hashHead hashes the beginning of the indexed part.
func (f *fingerprints) hashHead(file io.ReaderAt) (uint64, error) {
	return hashAt(file, 0, min(headCheck, f.stat.Size))
}

// hashTail hashes the end of the indexed part.
func (f *fingerprints) hashTail(file io.ReaderAt) (uint64, error) {
	n := min(tailCheck, f.stat.Size)
	return hashAt(file, f.stat.Size-n, n)
}

// hashAt hashes n bytes of obj at off. n must not exceed headCheck.
func hashAt(obj io.ReaderAt, off, n int64) (uint64, error) {
	buf := hashBuffers.Get().(*[headCheck]byte)
	defer hashBuffers.Put(buf)
	err := storage.ReadFull(obj, buf[:n], off)
	if err != nil {
		return 0, err
	}
	return maphash.Bytes(hashSeed, buf[:n]), nil
}

var hashBuffers = sync.Pool{New: func() any { return new([headCheck]byte) }}
