package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/filelock"
	"sessionfs/sessioncore/storage"
)

const (
	// lockPoll is how often waiters check the lock, the same as the client's.
	lockPoll = 2 * time.Millisecond
	// lockYoung is how long a lock without readable content is assumed to be just being written, the same as the
	// client's.
	lockYoung = 500 * time.Millisecond
	// lockSettle is how long to watch a lock that was created after a stale one was removed: another waiter may have
	// found the same lock stale and be about to remove ours by its name.
	lockSettle = 2 * lockPoll
	// lockTurn is how long the goroutines of this process may pass the lock to each other before other processes get
	// a chance: a tenth of how long those wait.
	lockTurn = 50 * time.Millisecond
	// lockYield is how long that chance lasts; others poll every lockPoll.
	lockYield = 3 * lockPoll
	// lockSize bounds how much of a lock is read: two decimal numbers, a colon and a newline are shorter.
	lockSize = 64
)

// heldLocks are the locks that a storage holds or waits for.
type heldLocks struct {
	queue storage.FIFOMutexes[string] // by name: there is never more than one lock of a name

	mu   sync.Mutex // guards the fields below
	in   map[string]storage.Token
	seen map[string]seenLock // locks of others, by the name that is locked
}

// dir returns the directory in which the lock of name is held, to which writes under the lock must go, and false if it is
// not held.
func (h *heldLocks) dir(name string) (storage.Token, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	dir, ok := h.in[name]
	return dir, ok
}

// add notes that a lock is held.
func (h *heldLocks) add(name string, dir storage.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.in == nil {
		h.in = map[string]storage.Token{}
	}
	h.in[name] = dir
	delete(h.seen, name)
}

func (h *heldLocks) remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.in, name)
}

// maxSeenLocks bounds how many locks are watched at a time. One that is forgotten is watched anew.
const maxSeenLocks = 1000

// seenLock is the lock of another as it was when we first saw it like that.
type seenLock struct {
	text  string
	state storage.Token
	since time.Time
}

// seenSince returns since when the lock of a name has been as it is now, as far as was seen.
func (h *heldLocks) seenSince(name, text string, state storage.Token) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	seen := h.seen[name]
	if seen.text != text || seen.state != state {
		seen = seenLock{text, state, time.Now()}
		if h.seen == nil || len(h.seen) >= maxSeenLocks {
			h.seen = map[string]seenLock{}
		}
		h.seen[name] = seen
	}
	return seen.since
}

// Lock implements storage.Journal with the client's protocol (docs/format.md, The client's lock): the outer lock of newer
// clients, and the file `.<name>.lock` beside name, which need not exist itself. Goroutines of this process get the
// lock in the order in which they ask.
//
// The error wraps ErrLocked if the lock could not be taken within 500 ms, the context's error if that ends first, and
// otherwise the errno: fs.ErrNotExist for a missing directory, fs.ErrPermission, EROFS, ENOSPC.
//
// unlock removes the lock file if it is still ours. Otherwise it returns ErrStale: another process broke the lock,
// and what was written under it may conflict with another write. Further calls do nothing.
func (s *Storage) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	ctx, cancel := storage.WithLimit(ctx)
	defer cancel()
	queue, leave, err := s.locks.queue.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	taken := false
	defer func() {
		if !taken { // also after a panic
			leave()
		}
	}()
	if time.Since(queue.Turn) > lockTurn {
		storage.Sleep(ctx, lockYield)
		queue.Turn = time.Now()
	}
	l, err := s.lock(ctx, name)
	for errors.Is(err, storage.ErrStale) && storage.Sleep(ctx, lockPoll) { // the directory was replaced during the wait
		l, err = s.lock(ctx, name)
	}
	if err != nil {
		return nil, err
	}
	taken = true
	s.locks.add(name, l.dir.id)
	return sync.OnceValue(func() error {
		defer leave()
		defer l.done()
		s.locks.remove(name)
		return l.remove()
	}), nil
}

// lock takes the lock in the directory that the path currently leads to. It fails with ErrStale if the directory is replaced
// meanwhile. The caller must hold the FIFO mutex of the name.
func (s *Storage) lock(ctx context.Context, name string) (*lockFile, error) {
	p, err := s.openParent(name)
	if err != nil {
		return nil, err
	}
	l := &lockFile{nameAt: p.beside("." + p.base + ".lock")}
	taken := false
	defer func() {
		if !taken { // also after a panic: clients could write no more
			l.done()
		}
	}()
	if err := l.takeGate(ctx); err != nil {
		return nil, err
	}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	taken = true
	if l.shared() {
		p.refresh()
	}
	return l, nil
}

// lockFile is an attempt to take a lock and, once that succeeded, the lock. The name of its nameAt is that of the session.
type lockFile struct {
	nameAt
	fd     int             // the open file, so that its inode number is not reused
	made   storage.Token   // of the new file; only device and inode are compared
	text   string          // the content that we wrote
	gates  []filelock.Lock // the outer lock, for each path of the storage
	nobody map[int]bool    // what isNobodys answered
}

// done gives the outer lock back.
func (l *lockFile) done() {
	l.releaseGates()
	l.close()
}

// Newer clients append under an outer lock alone, which the operating system keeps (docs/format.md, The client's
// lock). So writers here take both, in the client's order: first the outer one, then the lock file. Both waits together
// end after storage.LockLimit, as long as a client waits for either.

// gateEnding is what the path of the outer lock has behind that of the lock file.
const gateEnding = ".os"

// AlsoAt tells under which other paths clients may know the storage's directory. Clients that go through different
// links have different outer locks, so writers take the one of each path. Paths that lead elsewhere are left out. It
// is called before the storage is used.
func (s *Storage) AlsoAt(paths ...string) {
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil || slices.Contains(s.Paths(), abs) {
			continue
		}
		if real, err := resolvePath(abs); err == nil && real == s.path {
			s.links = append(s.links, abs)
		}
	}
}

// Paths returns the absolute paths under which clients may know the directory. The first is Path.
func (s *Storage) Paths() []string { return append([]string{s.path}, s.links...) }

// takeGate waits for the outer lock.
func (l *lockFile) takeGate(ctx context.Context) error {
	for {
		held, err := l.tryGate()
		if err != nil || held == "" {
			return err
		}
		if !storage.Sleep(ctx, lockPoll) {
			who := "a process that cannot be seen from here"
			if pid := filelock.Holder(held); pid != 0 {
				who = fmt.Sprintf("process %d", pid)
			}
			return fmt.Errorf("%w: %s (held by %s)", storage.WaitError(ctx), l.name, who)
		}
	}
}

// tryGate takes the outer lock of all paths, or none: then held is the path of one that another has. A path whose lock the
// system does not let us have is left out: the lock file remains, as everywhere before.
func (l *lockFile) tryGate() (held string, err error) {
	for _, dir := range l.storage.Paths() {
		path := filepath.Join(dir, storage.Dir(l.name), l.base) + gateEnding
		gate, err := filelock.TryAcquire(path)
		switch {
		case err == nil:
			l.gates = append(l.gates, gate)
		case errors.Is(err, filelock.ErrHeld):
			l.releaseGates()
			return path, nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
			l.releaseGates()
			return "", err // in a moment there may be one again
		}
	}
	return "", nil
}

func (l *lockFile) releaseGates() {
	for _, gate := range l.gates {
		gate.Release()
	}
	l.gates = nil
}

// take waits for the lock.
func (l *lockFile) take(ctx context.Context) error {
	var waitsFor string
	sawStale := false
	for ctx.Err() == nil {
		err := l.create()
		if err == nil {
			if l.settled(ctx, sawStale) {
				return nil
			}
			_ = l.remove()
			storage.Sleep(ctx, lockPoll)
			continue
		}
		if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
			if err := l.checkDir(); err != nil {
				return err
			}
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		held, stale := l.look()
		if stale {
			sawStale = true
			if l.breakStale() {
				continue
			}
		}
		waitsFor = held
		storage.Sleep(ctx, lockPoll)
	}
	return fmt.Errorf("%w: %s%s", storage.WaitError(ctx), l.name, waitsFor)
}

// settled reports whether a lock just created is ours for good. It reads the lock back, and again after lockSettle if
// a stale lock was removed before.
func (l *lockFile) settled(ctx context.Context, sawStale bool) bool {
	if !l.ours() {
		return false
	}
	return !sawStale || storage.Sleep(ctx, lockSettle) && l.ours()
}

// create creates the lock file, or fails with fs.ErrExist.
func (l *lockFile) create() error {
	fd, err := l.nameAt.create()
	if err != nil {
		return l.fail("lock", err)
	}
	made, err := fstat(fd)
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	l.fd, l.made, l.text = fd, made.Token, fmt.Sprintf("%d:%d\n", os.Getpid(), time.Now().UnixMilli())
	_ = giveToOwner(fd, l.was) // a lock that root keeps works as well; it exists for milliseconds
	n, err := kernel.writeOnce(fd, []byte(l.text))
	if err == nil && n < len(l.text) {
		err = unix.ENOSPC // the one reason for which a file system accepts a part of 20 bytes
	}
	if err == nil && l.shared() {
		err = flush(fd) // else others see a lock without content, which soon counts as stale
	}
	if err != nil {
		_ = l.remove()
		return l.fail("lock", err)
	}
	return nil
}

// ours reports whether the lock file is the one that we created and has the content that we wrote. If the name refers
// to the file that we have open, that is the one to read.
func (l *lockFile) ours() bool {
	if l.checkSame(l.made) != nil {
		return false
	}
	text, err := readLock(l.fd)
	return err == nil && text == l.text
}

// remove closes the lock file and removes it if the name still refers to it. It opens nothing: a process that has run
// out of descriptors must not leave its locks behind.
func (l *lockFile) remove() error {
	defer unix.Close(l.fd)
	err := l.checkSame(l.made)
	if errors.Is(err, storage.ErrStale) {
		return fmt.Errorf("%w: the lock of %s was broken by another process", storage.ErrStale, l.name)
	}
	if err == nil {
		if err = l.unlink(); err == nil {
			return nil
		}
		err = l.fail("unlock", err)
	}
	l.giveUp()
	return err
}

// giveUp makes a lock that cannot be removed one that nobody waits for, clients neither: without content, and old.
func (l *lockFile) giveUp() {
	if unix.Ftruncate(l.fd, 0) == nil {
		_ = unix.Futimes(l.fd, make([]unix.Timeval, 2))
	}
}

// look reads the existing lock: held says for the error message who holds it, stale reports whether it is stale. A lock
// that cannot be read counts as held.
func (l *lockFile) look() (held string, stale bool) {
	fd, st, err := l.open(unix.O_RDONLY)
	if err != nil {
		return l.heldBy(""), false
	}
	defer unix.Close(fd)
	text, err := readLock(fd)
	if err != nil {
		return l.heldBy(""), false
	}
	return l.heldBy(text), l.isStale(text, st)
}

func readLock(fd int) (string, error) {
	buf := make([]byte, lockSize+1)
	var n int
	err := retry(func() (err error) {
		n, err = unix.Pread(fd, buf, 0)
		return err
	})
	return string(buf[:max(n, 0)]), err
}

// breakStale removes a stale lock and reports whether it did.
//
// Between the check and the removal, another waiter may have removed that lock and created its own under the same
// name. Our processes prevent that with flock(2) on the stale file: only the holder may remove the name, after it has
// checked that the name still refers to this file. Against programs that do not use flock, the lock is renamed
// instead of removed and put back if it is another file; and the lock taken afterwards is watched for lockSettle.
func (l *lockFile) breakStale() bool {
	fd, st, err := l.open(unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer unix.Close(fd) // which also releases the flock
	err = retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == unix.EWOULDBLOCK {
		return false // another of our processes is breaking it
	} // other errors: a file system without flock; the other measures must suffice
	text, err := readLock(fd)
	if err != nil || !l.isStale(text, st) || l.checkSame(st.Token) != nil {
		return false
	}
	return l.moveAway(st.Token)
}

// moveAway removes the lock file if it is the file judged, and puts it back if it is another.
func (l *lockFile) moveAway(judged storage.Token) bool {
	aside := l.beside(storage.TemporaryName(path.Base(l.name))) // hidden like a temporary file, in case we die here
	if err := unix.Renameat(l.dir.fd, l.base, l.dir.fd, aside.base); err != nil {
		return false
	}
	if aside.checkSame(judged) != nil {
		if aside.renameNew(kernel, l.nameAt) != unix.EEXIST {
			return false
		} // a third process took the lock meanwhile: the owner will notice when it unlocks
	}
	_ = aside.unlink()
	return true
}

// Writers reports whether a process has a file open for writing at this moment, as a live client does
// (docs/design.md section 4). Callers must hold Lock(name), so that a writer that takes the lock is not found in the middle
// of its work. It asks for a read lease, which the kernel refuses exactly when the file is open for
// writing anywhere on this machine (docs/format.md, What a running client has open). Without leases, or without the
// permission for one, the state is unknown.
//
// The lease is given up at once. A process that opens the file for writing within these microseconds waits as long
// (with O_NONBLOCK it gets EAGAIN), and we receive SIGIO, which the Go runtime ignores. This process keeps no session
// open for writing except within Append and Replace.
//
// The error is that of Open.
func (s *Storage) Writers(name string) (storage.WriterState, error) {
	p, err := s.openParent(name)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer p.close()
	fd, _, err := p.open(unix.O_RDONLY)
	if err != nil {
		return storage.WritersUnknown, err
	}
	defer unix.Close(fd)
	return lease(fd, p.dir.remote), nil
}
