package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Writes go through an open directory, which may be moved away and replaced at any moment. So each write checks
// before and after that the path still leads to its directory, and is undone if not: what was acknowledged is in the
// directory that had the name at that time.

// checkDir fails with ErrStale unless the path still leads to the directory.
func (p nameAt) checkDir() error {
	was, err := p.dirStat()
	if err != nil {
		return err
	}
	now, err := p.storage.statDir(p.parent)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !now.SameObject(was.Token) {
		return fmt.Errorf("%w: the directory of %s was moved away or replaced", storage.ErrStale, p.name)
	}
	return err
}

// confirm returns the Stat of the name after a write to the file was. It fails with ErrStale if the name or the path
// to its directory now leads elsewhere. If the whole path leads to the file, which takes one call to see, both are
// right.
func (p nameAt) confirm(was storage.Token) (storage.Stat, error) {
	st, err := p.storage.statPath(p.name)
	if err == nil && st.SameObject(was) {
		return st, nil
	}
	if st, err = p.statSame(was); err == nil {
		err = p.checkDir()
	}
	return st, err
}

// statPath returns what the whole path to a name leads to, in one call; links in its directories are followed.
func (s *Storage) statPath(name string) (storage.Stat, error) {
	return nameAt{dirfd: unix.AT_FDCWD, base: s.Path() + "/" + name, name: name}.stat()
}

// statDir returns the Stat of the directory that the path dir currently leads to.
func (s *Storage) statDir(dir string) (storage.Stat, error) {
	if dir != "" {
		return s.Stat(dir)
	}
	root, st, err := s.root.get()
	if err == nil {
		root.release()
	}
	return st, err
}

// heldLocks are the locks that a storage holds, each with the directory in which it was taken: writes under a lock
// must go to that directory.
//
// The goroutines of a storage queue for a name as well, not only for the file it refers to, so that there is never
// more than one lock of a name.
type heldLocks struct {
	queue storage.FIFOMutexes[string]

	mu   sync.Mutex // guards the fields below
	in   map[string]storage.Token
	seen map[string]seenLock // locks of others in shared directories, by the name that is locked
}

// maxSeenLocks bounds how many locks are watched at a time. One that is forgotten is watched anew.
const maxSeenLocks = 1000

// see remembers a lock of another. A wait for a lock is shorter than the time for which one must stay as it is.
func (h *heldLocks) see(name string, lock seenLock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil || len(h.seen) >= maxSeenLocks {
		h.seen = map[string]seenLock{}
	}
	h.seen[name] = lock
}

// sighting returns the lock that see remembered.
func (h *heldLocks) sighting(name string) seenLock {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[name]
}

func (h *heldLocks) forget(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.seen, name)
}

func (h *heldLocks) add(name string, dir storage.Token) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.in == nil {
		h.in = map[string]storage.Token{}
	}
	h.in[name] = dir
}

func (h *heldLocks) remove(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.in, name)
}

// dir returns the directory in which the lock of name is held, and false if it is not held.
func (h *heldLocks) dir(name string) (storage.Token, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	dir, ok := h.in[name]
	return dir, ok
}

// openParentToWrite is openParent for a write. It fails with ErrStale if the lock of name is held in a directory that
// the path no longer leads to.
func (s *Storage) openParentToWrite(name string) (nameAt, error) {
	p, err := s.openParent(name)
	if err != nil {
		return nameAt{}, err
	}
	locked, ok := s.locks.dir(name)
	if !ok {
		return p, nil
	}
	dir, err := p.dirStat()
	if err == nil && !dir.SameObject(locked) {
		err = fmt.Errorf("%w: the directory of %s was replaced while its lock was held", storage.ErrStale, name)
	}
	if err != nil {
		p.close()
		return nameAt{}, err
	}
	return p, nil
}
