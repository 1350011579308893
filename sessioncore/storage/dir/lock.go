package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/proc"
	"sessionfs/sessioncore/storage"
)

const (
	// lockPoll is the interval between a waiter's checks of the lock, as in the client.
	lockPoll = 2 * time.Millisecond
	// lockYoung is the highest age of a lock that is still being written, if it has no readable content, as in the
	// client.
	lockYoung = 500 * time.Millisecond
	// lockSettle is how long a lock created after a stale one is watched: another waiter may have
	// judged the same stale lock and be about to remove ours by its name.
	lockSettle = 2 * lockPoll
	// lockTurn is how long this process may pass the lock among its goroutines before others get a
	// chance: a tenth of the time that they wait.
	lockTurn = 50 * time.Millisecond
	// lockYield is how long that chance lasts; others poll every lockPoll.
	lockYield = 3 * lockPoll
	// lockSize bounds the content of a lock: two numbers, a colon and a newline.
	lockSize = 64
)

// heldLocks are the locks that a storage holds or waits for.
type heldLocks struct {
	queue   storage.FIFOMutexes             // by name
	foreign *lru.Cache[string, foreignLock] // by name
	dirs    sync.Map                        // the storage.Token of a held lock's directory, by name: writes go there
}

// maxForeignLocks bounds the watched locks.
const maxForeignLocks = 1000

// foreignLock is a state of another process's lock.
type foreignLock struct {
	text  string
	state storage.Token
	since time.Time // when it was seen first
}

// foreignSince returns since when another process's lock is known to have its current state.
// Callers must hold the FIFO mutex of the name.
func (h *heldLocks) foreignSince(name, text string, state storage.Token) time.Time {
	lock, _ := h.foreign.Get(name)
	if lock.text != text || lock.state != state {
		lock = foreignLock{text: text, state: state, since: time.Now()}
		h.foreign.Add(name, lock)
	}
	return lock.since
}

// Lock implements storage.Journal with the client's protocol (docs/format.md, The client's lock):
// the outer lock of newer clients, and the file `.<name>.lock` beside name, which need not exist.
// The goroutines of this process queue for it.
//
// The error wraps ErrLocked after 500 ms, the context's error if that ends first, and else the
// errno: fs.ErrNotExist for a missing directory, fs.ErrPermission, EROFS, ENOSPC.
//
// unlock removes the lock file, or returns ErrStale if another process broke the lock; then the
// writes under it may conflict with others. Further calls do nothing.
func (s *Storage) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	ctx, cancel := storage.WithLimit(ctx)
	defer cancel()
	queue, leave, err := s.locks.queue.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	locked := false
	defer func() {
		if !locked { // also after a panic
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
	locked = true
	s.locks.dirs.Store(name, l.parent)
	s.locks.foreign.Remove(name)
	return sync.OnceValue(func() error {
		defer leave()
		defer l.releaseAll()
		s.locks.dirs.Delete(name)
		return l.remove()
	}), nil
}

// lockEnding ends the names of lock files.
const lockEnding = ".lock"

// lock takes the lock in the directory at the current path. It fails with ErrStale if that is
// replaced meanwhile. The caller must hold the FIFO mutex of the name.
func (s *Storage) lock(ctx context.Context, name string) (*lockFile, error) {
	p, err := s.openParent(name)
	if err != nil {
		return nil, err
	}
	l := &lockFile{nameAt: p.beside("." + p.base + lockEnding)}
	locked := false
	defer func() {
		if !locked { // also after a panic: clients could write no more
			l.releaseAll()
		}
	}()
	parent, err := fstat(l.dir)
	if err == nil {
		err = l.takeGates(ctx)
	}
	if err == nil {
		err = l.take(ctx)
	}
	if err != nil {
		return nil, err
	}
	l.parent = parent.Token
	locked = true
	if l.shared() {
		p.refresh()
	}
	return l, nil
}

// lockFile is a lock, or an attempt to take it. The name of its nameAt is the session's.
type lockFile struct {
	nameAt
	fd     int           // the open file, so that its inode number is not reused
	id     storage.Token // of the new file; only device and inode are compared
	text   string        // the content that we wrote
	parent storage.Token // the directory
	gates  []proc.Lock   // the outer lock, for each path of the storage
	orphan map[int]bool  // first answers of isOrphan
}

// releaseAll releases the outer lock and the directory.
func (l *lockFile) releaseAll() {
	l.releaseGates()
	l.close()
}

// Newer clients append under an outer lock alone, which the operating system keeps (docs/format.md,
// The client's lock). So writers take both, in the client's order: the outer lock, then the lock
// file. Both waits together end after storage.LockLimit, and try once more, as the system may not
// have run us before.

// gateEnding ends the path of the outer lock, after the path of the lock file.
const gateEnding = ".os"

// takeGates waits for the outer locks of all paths. Behind the end of the wait it tries once more. The error is WaitError's, with
// the holder.
func (l *lockFile) takeGates(ctx context.Context) error {
	isLast := false
	for {
		held, err := l.tryGates()
		if err != nil || held == "" {
			return err
		}
		if isLast {
			return fmt.Errorf("%w: %s (held by %s)", storage.WaitError(ctx), l.name, gateHolder(held))
		}
		isLast = !storage.Sleep(ctx, lockPoll)
	}
}

// gateHolder describes the process that holds the outer lock at a path.
func gateHolder(path string) string {
	pid := proc.LockHolder(path)
	if pid == 0 {
		return "a process that cannot be seen from here"
	}
	return fmt.Sprintf("process %d", pid)
}

// tryGates takes the outer locks of all paths, or none: then held is the path of a foreign one. A
// path is skipped if the system refuses its lock, as the lock file remains.
func (l *lockFile) tryGates() (held string, err error) {
	for _, dir := range l.storage.Paths() {
		path := filepath.Join(dir, storage.Dir(l.name), l.base) + gateEnding
		gate, err := proc.TryLock(path)
		switch {
		case err == nil:
			l.gates = append(l.gates, gate)
		case errors.Is(err, proc.ErrHeld):
			l.releaseGates()
			return path, nil
		case errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
			l.releaseGates()
			return "", err // descriptors may be free in a moment
		}
	}
	return "", nil
}

// releaseGates releases the outer locks that were taken so far.
func (l *lockFile) releaseGates() {
	for _, gate := range l.gates {
		gate.Release()
	}
	l.gates = nil
}

// take waits for the lock. Behind the end of the wait it tries once more, and again after each stale lock that it breaks.
func (l *lockFile) take(ctx context.Context) error {
	sawStale := false
	isLast := false
	for {
		result, err := l.tryTake(ctx, sawStale)
		if err != nil || result.isTaken {
			return err
		}
		sawStale = sawStale || result.isStale
		if isLast && !result.isBroken {
			return fmt.Errorf("%w: %s%s", storage.WaitError(ctx), l.name, result.held)
		}
		isLast = !storage.Sleep(ctx, lockPoll)
	}
}

// lockTry is the result of a try to take a lock. If it is not taken and held is empty, another waiter removed ours.
type lockTry struct {
	isTaken  bool
	held     string // describes the holder of another lock
	isStale  bool   // that lock is stale
	isBroken bool   // and was removed
}

// tryTake creates the lock file, or breaks one that is stale. sawStale says that a stale one was there before. An error other
// than the one of a foreign lock ends the wait.
func (l *lockFile) tryTake(ctx context.Context, sawStale bool) (lockTry, error) {
	err := l.create()
	if err == nil {
		isTaken := l.settled(ctx, sawStale)
		if !isTaken {
			_ = l.remove()
		}
		return lockTry{isTaken: isTaken}, nil
	}
	isForeign := errors.Is(err, fs.ErrExist)
	if isForeign || errors.Is(err, fs.ErrNotExist) { // perhaps in a directory that was moved away
		gone := l.checkDir()
		if gone != nil {
			return lockTry{}, gone
		}
	}
	if !isForeign {
		return lockTry{}, err
	}
	held, isStale := l.inspect()
	result := lockTry{held: held, isStale: isStale}
	result.isBroken = isStale && l.breakStale()
	return result, nil
}

// settled reports whether a lock just created is ours for good. It reads the lock back, and once
// more after lockSettle if a stale lock was removed before.
func (l *lockFile) settled(ctx context.Context, sawStale bool) bool {
	if !l.ours() {
		return false
	}
	if !sawStale {
		return true
	}
	return storage.Sleep(ctx, lockSettle) && l.ours()
}

// create creates the lock file, or fails with fs.ErrExist.
func (l *lockFile) create() error {
	fd, err := l.nameAt.create()
	if err != nil {
		return l.fail("lock", err)
	}
	st, err := fstat(fd)
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	l.fd = fd
	l.id = st.Token
	l.text = fmt.Sprintf("%d:%d\n", os.Getpid(), time.Now().UnixMilli())
	_ = l.giveToOwner(fd) // a lock of root's works as well; it exists for milliseconds
	n, err := kernel.writeOnce(fd, []byte(l.text))
	if err == nil && n < len(l.text) {
		err = unix.ENOSPC // the only reason to accept a part of 20 bytes
	}
	if err == nil && l.shared() {
		err = flush(fd) // else other machines see a lock without content, which soon counts as stale
	}
	if err != nil {
		_ = l.remove()
		return l.fail("lock", err)
	}
	return nil
}

// ours reports whether the lock file is the one that we created, with our content.
func (l *lockFile) ours() bool {
	if l.checkSame(l.id) != nil {
		return false
	}
	text, err := readLock(l.fd)
	return err == nil && text == l.text
}

// remove closes the lock file and removes it if it is still ours. It opens nothing, so that a
// process without free descriptors leaves no locks behind.
func (l *lockFile) remove() error {
	defer unix.Close(l.fd)
	err := l.checkSame(l.id)
	if errors.Is(err, storage.ErrStale) {
		return fmt.Errorf("%w: the lock of %s was broken by another process", storage.ErrStale, l.name)
	}
	if err == nil {
		err = l.fail("unlock", l.unlink())
	}
	if err == nil {
		return nil
	}
	l.giveUp()
	return err
}

// giveUp makes a lock that cannot be removed stale for everybody: without content, and old.
func (l *lockFile) giveUp() {
	if unix.Ftruncate(l.fd, 0) == nil {
		_ = unix.Futimes(l.fd, make([]unix.Timeval, 2))
	}
}

// inspect reads the existing lock: held describes the holder. An unreadable lock is held.
func (l *lockFile) inspect() (held string, stale bool) {
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

// readLock returns the text of a lock file, of a longer one only the beginning.
func readLock(fd int) (string, error) {
	buf := make([]byte, lockSize+1)
	n, err := preadFull(fd, buf, 0)
	return string(buf[:n]), err
}

// breakStale removes a stale lock and reports whether it did.
//
// Between the check and the removal, another waiter may remove that lock and create its own. Our
// processes prevent that with flock(2) on the stale file: only its holder may remove the name,
// after a check that the name still refers to it. Against programs without flock, the lock is
// renamed, and restored if it is another file; and the next lock is watched for lockSettle.
func (l *lockFile) breakStale() bool {
	fd, st, err := l.open(unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer unix.Close(fd) // which also releases the flock
	err = retry(func() error {
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	})
	if err == unix.EWOULDBLOCK {
		return false // another of our processes is breaking it
	} // other errors: a file system without flock; the other measures must suffice
	text, err := readLock(fd)
	if err != nil || !l.isStale(text, st) || l.checkSame(st.Token) != nil {
		return false
	}
	return l.moveAway(st.Token)
}

// moveAway removes the lock file if it is the judged one, and restores any other.
func (l *lockFile) moveAway(judged storage.Token) bool {
	aside := l.beside(storage.TemporaryName(l.base)) // hidden like a temporary file, in case we die here
	err := unix.Renameat(l.dir, l.base, l.dir, aside.base)
	if err != nil {
		return false
	}
	// If a third process took the lock meanwhile, the owner will notice when it unlocks.
	if aside.checkSame(judged) != nil && aside.renameNew(kernel, l.nameAt) != unix.EEXIST {
		return false
	}
	_ = aside.unlink()
	return true
}

// Writers reports whether a process has a file open for writing, as a live client does
// (docs/design.md section 4). It takes a read lease, which the kernel refuses exactly when the file
// is open for writing on this machine (docs/format.md, What a running client has open). Without
// leases or the permission for one, the state is unknown. The error is Open's. Callers must
// hold Lock(name), so that no writer with the lock is found.
//
// The lease is given up at once. A process that opens the file for writing within these
// microseconds waits (with O_NONBLOCK it gets EAGAIN), and we receive SIGIO, which Go ignores. This
// process keeps no session open for writing except within Append and Replace.
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
	return lease(fd, p.remote()), nil
}
