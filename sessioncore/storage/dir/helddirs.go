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

// maxHeldDirs is how many directories stay open. Session files lie in one directory for each working
// directory; somebody who walks all of them meets one after the other, and a descriptor is scarce.
const maxHeldDirs = 32

// heldDirs keeps the directories open in which names were looked up last, so that a look at a file, which every
// request of the kernel needs, does not open and close something each time.
//
// What is held may be moved away, replaced or removed at any time; so before each use the name is
// compared with what is held: calls of fstatat instead of openat2, fstat and close, which follow no
// link. That finds what a walk down the path finds, which takes one step after the other too. While a
// directory is held nothing else gets its inode number.
type heldDirs struct {
	mu   sync.Mutex // guards what follows
	dirs map[string]*heldDir
	uses int64
	away map[string]absence // of those that were held, for a while
}

// heldDir is an open directory. Who got it from hold releases it.
type heldDir struct {
	fd   int
	id   storage.Token // of the token only what tells which object it is
	refs atomic.Int32  // users, and one for being in dirs
	used int64         // heldDirs.uses when last used
}

func (d *heldDir) release() {
	if d.refs.Add(-1) == 0 {
		_ = unix.Close(d.fd)
	}
}

// find returns the directory that is held under a name, nil for none.
func (h *heldDirs) find(name string) *heldDir {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.dirs[name]
	if d != nil {
		h.uses++
		d.used = h.uses
		d.refs.Add(1)
	}
	return d
}

// put holds a directory, and lets go of the one that was used longest ago where there are too many.
func (h *heldDirs) put(name string, d *heldDir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dirs == nil {
		h.dirs = map[string]*heldDir{}
	}
	delete(h.away, name)
	h.dropLocked(name, h.dirs[name])
	if len(h.dirs) >= maxHeldDirs {
		var oldest string
		for n, other := range h.dirs {
			if oldest == "" || other.used < h.dirs[oldest].used {
				oldest = n
			}
		}
		h.dropLocked(oldest, h.dirs[oldest])
	}
	h.uses++
	d.used = h.uses
	d.refs.Add(1)
	h.dirs[name] = d
}

// drop lets go of d, if it is still what is held under the name.
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

// gone notes that what was held under a name is not there any more.
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

// isAway reports whether a directory that was held went away so recently that it must not be made anew.
func (h *heldDirs) isAway(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.away[name].lasts()
}

// close lets go of all.
func (h *heldDirs) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, d := range h.dirs {
		h.dropLocked(name, d)
	}
}

// canHold reports whether a directory is one that is held: directly below the root, where the session
// files are. Each level more would be one more name to compare.
func canHold(dir string) bool { return dir != "" && strings.IndexByte(dir, '/') < 0 }

// hold returns the open directory that stands under a name at this moment, and what it is; the caller releases
// it. Only for names for which canHold.
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
	d := &heldDir{fd: fd, id: st.Token}
	d.refs.Store(1)
	s.held.put(name, d)
	return d, st, nil
}
