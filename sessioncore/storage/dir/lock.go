package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"time"

	"golang.org/x/sys/unix"

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

// mutexKey identifies a file regardless of the Storage: two Storages may have the same directory.
type mutexKey struct {
	device, inode uint64 // of the directory
	base          string
}

// fileMutexes are the FIFO mutexes of this process, shared by all storages, as the lock files are.
var fileMutexes storage.FIFOMutexes[mutexKey]

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
	turn, leave, err := s.locks.queue.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	taken := false
	defer func() {
		if !taken { // also after a panic
			leave()
		}
	}()
	l, err := s.lock(ctx, name, turn)
	for errors.Is(err, storage.ErrStale) && storage.Sleep(ctx, lockPoll) { // the directory was replaced during the wait
		l, err = s.lock(ctx, name, turn)
	}
	if err != nil {
		return nil, err
	}
	taken = true
	s.locks.add(name, l.owner.Token)
	return sync.OnceValue(func() error {
		defer leave()
		s.locks.remove(name)
		return l.release()
	}), nil
}

// lock takes the lock in the directory that the path currently leads to; turn is the FIFO mutex that the caller holds
// in s.locks.queue. It fails with ErrStale if the directory is replaced meanwhile.
func (s *Storage) lock(ctx context.Context, name string, turn *storage.FIFOMutex) (*lockFile, error) {
	p, err := s.openParent(name)
	if err != nil {
		return nil, err
	}
	dir, err := p.dirStat()
	if err != nil {
		p.close()
		return nil, err
	}
	in, leave, err := fileMutexes.Lock(ctx, mutexKey{dir.Device, dir.Inode, p.base})
	if err != nil {
		p.close()
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	if time.Since(in.Turn) > lockTurn || time.Since(turn.Turn) > lockTurn {
		storage.Sleep(ctx, lockYield)
		in.Turn, turn.Turn = time.Now(), time.Now()
	}
	p.base = "." + p.base + ".lock"
	l := &lockFile{nameAt: p, owner: dir, leave: leave, root: s.Path(), of: name}
	taken := false
	defer func() {
		if !taken { // also after a panic: clients could write no more
			l.done()
		}
	}()
	if l.gate, err = s.takeGate(ctx, path.Join(p.parent, p.base)); err != nil {
		return nil, err
	}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	taken = true
	if l.shared() {
		s.locks.forget(name)
		file := p
		file.base, file.name = path.Base(name), name
		file.refresh()
	}
	return l, nil
}

// lockFile is an attempt to take a lock and, once that succeeded, the lock.
type lockFile struct {
	nameAt               // the lock file
	owner  storage.Stat  // of the directory
	fd     int           // the open file, so that its inode number is not reused
	made   storage.Token // of the new file; only device and inode are compared
	text   string        // the content that we wrote
	gate   gate          // the outer lock
	leave  func()        // unlocks the FIFO mutex
	root   string        // the path of the Storage
	seen   seenLock      // the lock of another that was met last
	of     string        // the name that is locked
}

func (l *lockFile) done() {
	l.gate.release()
	l.leave()
	l.close()
}

// release removes the lock file, gives the outer lock back and unlocks the FIFO mutex.
func (l *lockFile) release() error {
	defer l.done()
	return l.remove()
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
	fd, err := l.nameAt.create(l.base)
	if err != nil {
		return l.fail("lock", err)
	}
	l.fd = fd
	now := time.Now().UnixMilli()
	l.text = fmt.Sprintf("%d:%d\n", os.Getpid(), now)
	made, err := fstat(fd)
	if err != nil {
		_ = unix.Close(fd)
		return err
	}
	l.made = made.Token
	ourLocks.add(l.base, lockMade{now, l.owner.Token})
	if made.UID != l.owner.UID || made.GID != l.owner.GID {
		// A lock that root keeps works as well; it exists for milliseconds.
		_ = giveToOwner(fd, l.owner)
	}
	if n, err := kernel.writeOnce(fd, []byte(l.text)); err != nil || n < len(l.text) {
		if err == nil {
			err = unix.ENOSPC // the one reason for which a file system accepts a part of 20 bytes
		}
		_ = l.remove()
		return l.fail("lock", err)
	}
	if l.shared() {
		if err := flush(fd); err != nil { // else others see a lock without content, which soon counts as stale
			_ = l.remove()
			return l.fail("lock", err)
		}
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
	switch err := l.checkSame(l.made); {
	case errors.Is(err, storage.ErrStale):
		return fmt.Errorf("%w: the lock of %s was broken by another process", storage.ErrStale, l.name)
	case err != nil:
		return err
	}
	if err := unix.Unlinkat(l.dirfd, l.base, 0); err != nil {
		return l.fail("unlock", err)
	}
	return nil
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
	return l.heldBy(text), l.isStale(fd, text, st)
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
	if err != nil || !l.isStale(fd, text, st) || l.checkSame(st.Token) != nil {
		return false
	}
	return l.moveAway(st.Token)
}

// moveAway removes the lock file if it is the file judged, and puts it back if it is another.
func (l *lockFile) moveAway(judged storage.Token) bool {
	aside := storage.TemporaryName(path.Base(l.name)) // hidden like a temporary file, in case we die here
	if err := unix.Renameat(l.dirfd, l.base, l.dirfd, aside); err != nil {
		return false
	}
	moved := nameAt{dirfd: l.dirfd, base: aside, name: l.name}
	if moved.checkSame(judged) != nil {
		if kernel.renameNew(l.dirfd, aside, l.dirfd, l.base) != unix.EEXIST {
			return false
		} // a third process took the lock meanwhile: the owner will notice when it unlocks
	}
	_ = unix.Unlinkat(l.dirfd, aside, 0)
	return true
}
