package dir

import (
	"errors"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// maxHeldDirs is how many directories stay open. There is one directory of session files for each working directory;
// a crawler visits one after the other, and descriptors are scarce.
const maxHeldDirs = 32

// heldDirs caches open directories in which names were looked up, so that a stat, which every request of the
// kernel needs, does not open and close one each time.
//
// A cached directory may be moved, replaced or removed at any time. So before each use its name is compared with it:
// fstatat, which follows no link, instead of openat2, fstat and close. That is as exact as walking the path, which
// takes several steps too. While a directory is open its inode number is not reused.
type heldDirs struct {
	mu   sync.Mutex // guards the fields below
	dirs map[string]*heldDir
	away map[string]absence // recently removed directories that were held
}

// heldDir is an open directory with a reference count. Callers of hold and find must call release.
type heldDir struct {
	fd     int
	id     storage.Token // only device and inode are compared
	remote bool          // isShared
	refs   atomic.Int32  // users, plus one while in dirs
}

func (d *heldDir) release() {
	if d.refs.Add(-1) == 0 {
		_ = unix.Close(d.fd)
	}
}

// find returns the cached directory name with a reference added, or nil if there is none.
func (h *heldDirs) find(name string) *heldDir {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[name]
	if d != nil {
		d.refs.Add(1)
	}
	return d
}

// put caches a directory and, if there are too many, drops any other one.
func (h *heldDirs) put(name string, d *heldDir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dirs == nil {
		h.dirs = map[string]*heldDir{}
	}
	delete(h.away, name)
	h.dropLocked(name, h.dirs[name])
	for other, its := range h.dirs {
		if len(h.dirs) < maxHeldDirs {
			break
		}
		h.dropLocked(other, its)
	}
	d.refs.Add(1)
	h.dirs[name] = d
}

// drop removes d from the cache if it is still what name stands for there.
func (h *heldDirs) drop(name string, d *heldDir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropLocked(name, d)
}

func (h *heldDirs) dropLocked(name string, d *heldDir) {
	if d != nil && h.dirs[name] == d {
		delete(h.dirs, name)
		d.release()
	}
}

// gone records that the held directory name no longer exists.
func (h *heldDirs) gone(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n, a := range h.away {
		if !a.lasts() {
			delete(h.away, n)
		}
	}
	if h.away == nil {
		h.away = map[string]absence{}
	}
	if len(h.away) < maxHeldDirs {
		a := h.away[name]
		a.begins()
		h.away[name] = a
	}
}

// isAway reports whether the directory name was held and disappeared less than maxAbsence ago, so that it must not be
// created.
func (h *heldDirs) isAway(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away[name].lasts()
}

// close drops all directories.
func (h *heldDirs) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, d := range h.dirs {
		h.dropLocked(name, d)
	}
}

// canHold reports whether a directory is cached: only those directly below the root, where the session files are.
// Each further level would be one more name to compare.
func canHold(dir string) bool { return dir != "" && strings.IndexByte(dir, '/') < 0 }

// hold returns the open directory currently at name and its Stat. name must satisfy canHold. Callers must call
// release.
func (s *Storage) hold(name string) (*heldDir, storage.Stat, error) {
	known := s.held.find(name)
	if known != nil {
		st, err := s.Stat(name)
		if err == nil && st.SameObject(known.id) {
			return known, st, nil
		}
		s.held.drop(name, known)
		known.release()
	}
	fd, err := s.openat(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		if known != nil && errors.Is(err, fs.ErrNotExist) {
			s.held.gone(name)
		}
		return nil, storage.Stat{}, err
	}
	st, err := fstat(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, storage.Stat{}, err
	}
	d := &heldDir{fd: fd, id: st.Token, remote: isShared(fd)}
	d.refs.Store(1)
	s.held.put(name, d)
	return d, st, nil
}
