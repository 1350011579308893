package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// A write goes through an open directory, and that may be moved away and another be put in its place at any moment.
// So each write looks, right before and right after, whether its directory is what the path to it stands for, and
// is taken back where it is not: what was acknowledged is in the directory that had the name then.

// checkDir fails with ErrStale when the path to the place's directory stands for another one, or for none.
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

// confirm is what the name stands for after a write to the file that it stood for. It fails with ErrStale where that is
// another one by now, or the directory is. Where the whole path leads to the file, which one call tells, both hold.
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

// statPath is what the whole path to a name leads to, through links too, in one call.
func (s *Storage) statPath(name string) (storage.Stat, error) {
	return nameAt{dirfd: unix.AT_FDCWD, base: s.Path() + "/" + name, name: name}.stat()
}

// statDir is what the path to a directory stands for now.
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

// heldLocks are the locks that a storage holds, each with the directory that it was taken in: what is done under a
// lock must be done there.
//
// The goroutines of one storage queue for a name, not only for what it stands for at the moment, so that there is
// never more than one lock of a name.
type heldLocks struct {
	queue storage.FIFOMutexes[string]

	mu sync.Mutex // guards in
	in map[string]storage.Token
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

// dir returns the directory in which the lock of a name is held; false where it is not held.
func (h *heldLocks) dir(name string) (storage.Token, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	dir, ok := h.in[name]
	return dir, ok
}

// openParentToWrite is openParent for a write. It fails with ErrStale where the lock of the name is held in a directory that the
// path does not stand for any more.
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
