package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// lockPoll is how often a waiter looks; the client's own.
	lockPoll = 2 * time.Millisecond
	// lockYoung is how long a lock without a readable content is left to whoever is writing it; the
	// client's own.
	lockYoung = 500 * time.Millisecond
	// lockSettle is how long a lock that was taken in the place of a stale one is watched: another waiter
	// may have judged the stale one too and be about to remove, by its name, what is ours now.
	lockSettle = 2 * lockPoll
	// lockTurn is how long the goroutines of this process may pass the lock on to each other before
	// others get a chance; a tenth of the others' patience.
	lockTurn = 50 * time.Millisecond
	// lockYield is that chance: others look every lockPoll.
	lockYield = 3 * lockPoll
	// lockSize bounds what is read of a lock: two decimal numbers, a colon and a newline are shorter.
	lockSize = 64
)

// mutexKey is a file of whatever Storage: two of them may be over one directory.
type mutexKey struct {
	device, inode uint64 // of the directory
	base          string
}

// fileMutexes are this process's queues. One for all storages, as the lock files are.
var fileMutexes storage.FIFOMutexes[mutexKey]

// Lock implements Storage with the client's protocol (docs/format.md, The client's lock): the file
// `.<name>.lock` beside name. name itself need not exist. Goroutines of this process queue in order.
//
// ErrLocked: not got within 500 ms. The context's error, when that is done first. Else what the
// system says: fs.ErrNotExist for a missing directory, fs.ErrPermission, EROFS, ENOSPC.
//
// unlock removes the lock file if it is still ours; else it returns ErrStale: somebody broke the lock,
// and what was written under it may have met another's write. Further calls do nothing.
func (s *Storage) Lock(ctx context.Context, name string) (unlock func() error, err error) {
	ctx, cancel := storage.WithLimit(ctx)
	defer cancel()
	turn, leave, err := s.locks.queue.Lock(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, name)
	}
	l, err := s.lock(ctx, name, turn)
	for errors.Is(err, storage.ErrStale) && storage.Sleep(ctx, lockPoll) { // the directory was replaced while the lock was waited for
		l, err = s.lock(ctx, name, turn)
	}
	if err != nil {
		leave()
		return nil, err
	}
	s.locks.add(name, l.owner.Token)
	return sync.OnceValue(func() error {
		defer leave()
		s.locks.remove(name)
		return l.release()
	}), nil
}

// lock takes the lock in the directory that the path stands for now; turn is what the name's queue knows. ErrStale:
// the path stands for another one by now.
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
	l := &lockFile{nameAt: p, owner: dir, leave: leave}
	if err := l.take(ctx); err != nil {
		l.done()
		return nil, err
	}
	return l, nil
}

// lockFile is one attempt at a lock, and the lock when that succeeded.
type lockFile struct {
	nameAt               // of the lock file
	owner  storage.Stat  // of the directory
	fd     int           // the file, kept open so that no other file gets its inode number
	made   storage.Token // of the file when it was made, of which only what tells which one it is
	text   string        // what we wrote into it
	leave  func()        // lets the next one of this process in
}

func (l *lockFile) done() {
	l.leave()
	l.close()
}

// release gives the lock back.
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

// settled tells whether a lock just created is ours for good. It is read back once; again after a
// while where a stale one was in its place.
func (l *lockFile) settled(ctx context.Context, sawStale bool) bool {
	if !l.ours() {
		return false
	}
	return !sawStale || storage.Sleep(ctx, lockSettle) && l.ours()
}

// create makes the lock file, or fails with fs.ErrExist.
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
		// A lock that stays root's works as well, as long as its few milliseconds go.
		_ = giveToOwner(fd, l.owner)
	}
	if n, err := kernel.writeOnce(fd, []byte(l.text)); err != nil || n < len(l.text) {
		if err == nil {
			err = unix.ENOSPC // the one reason for which a file system takes a part of 20 bytes
		}
		_ = l.remove()
		return l.fail("lock", err)
	}
	return nil
}

// ours reports whether the lock file is the one that we made and reads as we wrote it. Where the name stands for
// the file that we have open, that is the one to be read.
func (l *lockFile) ours() bool {
	if l.checkSame(l.made) != nil {
		return false
	}
	text, err := readLock(l.fd)
	return err == nil && text == l.text
}

// remove lets go of the lock, and of its file if the name still stands for that. It needs no further
// descriptor: a process that has run out of them must not leave its locks behind.
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

// look reads the lock that is in the way: who holds it, for the error message, and whether it is stale.
// What cannot be read is held.
func (l *lockFile) look() (held string, stale bool) {
	fd, st, err := l.open(unix.O_RDONLY)
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	text, err := readLock(fd)
	if err != nil {
		return "", false
	}
	return heldBy(text), l.isStale(text, st)
}

// isStale judges the lock in the way.
func (l *lockFile) isStale(text string, st storage.Stat) bool {
	return staleLock(text, st.ModTime()) || ourLocks.isCopy(l.base, text, l.owner.Token)
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

// lockHolder is the process that a lock names; ok is false for a malformed lock.
func lockHolder(text string) (pid int, ok bool) {
	pid, _, ok = lockContent(text)
	return pid, ok
}

// lockContent reads a lock: the process, and when it took the lock in milliseconds since the epoch.
func lockContent(text string) (pid int, millis int64, ok bool) {
	first, second, found := strings.Cut(strings.TrimSuffix(text, "\n"), ":")
	if !found || len(text) > lockSize || !allDigits(first) || !allDigits(second) {
		return 0, 0, false
	}
	millis, _ = strconv.ParseInt(second, 10, 64)
	// A process number is a positive 32-bit number; kill means something else by 0.
	n, err := strconv.ParseInt(first, 10, 32)
	return int(n), millis, err == nil && n > 0 && n <= math.MaxInt32
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func heldBy(text string) string {
	if pid, ok := lockHolder(text); ok {
		return fmt.Sprintf(" (held by process %d)", pid)
	}
	return " (held by an unknown process)"
}

// staleLock judges a lock's content (docs/format.md, The client's lock): the process is no more, or the content is
// malformed and old. One without its newline may be in the writing still, its number cut short, so it has to be
// old as well. A file from the future is not old: the clocks differ, so nobody knows.
func staleLock(text string, modified time.Time) bool {
	pid, ok := lockHolder(text)
	if ok && !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	if ok && strings.HasSuffix(text, "\n") {
		return true
	}
	return time.Since(modified) > lockYoung
}

// breakStale removes a stale lock, and reports whether it did.
//
// Between judging and removing, another waiter may have removed that lock and made its own under the
// same name. Among us flock(2) on the stale file forbids that: only who has it, and finds under it that
// the name is still this file's, may remove the name. Programs that know nothing of flock are met
// by renaming instead of removing: if what was moved away is not what was judged, it is put
// back; and by watching the lock taken afterwards for a while (lockSettle).
func (l *lockFile) breakStale() bool {
	fd, st, err := l.open(unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer unix.Close(fd) // and with it the flock
	err = retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if err == unix.EWOULDBLOCK {
		return false // another of us is at it
	} // any other error: a file system without flock; the rest has to do
	text, err := readLock(fd)
	if err != nil || !l.isStale(text, st) || l.checkSame(st.Token) != nil {
		return false
	}
	return l.moveAway(st.Token)
}

// moveAway removes the lock file if it is the one that was judged, and puts it back if it is another.
func (l *lockFile) moveAway(judged storage.Token) bool {
	aside := storage.TemporaryName(path.Base(l.name)) // hidden like a temporary, should we die here
	if err := unix.Renameat(l.dirfd, l.base, l.dirfd, aside); err != nil {
		return false
	}
	moved := nameAt{dirfd: l.dirfd, base: aside, name: l.name}
	if moved.checkSame(judged) != nil {
		if kernel.renameNew(l.dirfd, aside, l.base) != unix.EEXIST {
			return false
		} // a third one took the lock in that moment: the owner will find out when it unlocks
	}
	_ = unix.Unlinkat(l.dirfd, aside, 0)
	return true
}
