package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// maxHeldDirs bounds the open directories beside the storage's own. There is one for each
	// working directory; a crawler visits one after the other, and descriptors are scarce.
	maxHeldDirs = 32
	// maxAbsence is how long a missing directory is not created again. A user who restores one
	// removes it first; in one that we created, `mv backup sessions` would put it a level too deep.
	maxAbsence = time.Minute
)

// heldDirs caches open directories, so that a stat, which every request needs, does not open and
// close one: the storage's own, "", and those directly in it, which have the session files.
//
// A cached directory may be moved, replaced, mounted over or removed. So each use compares its name
// with it by one fstatat without following links, in place of openat2, fstat and close. That is as
// exact as a walk of the path. The inode number of an open directory is not reused.
type heldDirs struct {
	mu     sync.Mutex                       // guards the fields below
	dirs   *simplelru.LRU[string, *heldDir] // the storage's own is used with each other one, and stays
	absent map[string]time.Time             // when cached directories disappeared, for maxAbsence
	last   storage.Stat                     // of the storage's own, without its identity, which a restored one has not
	closed bool
}

// heldDir is an open directory with a reference count.
type heldDir struct {
	fd        int
	id        storage.Token // only device and inode are compared
	remote    bool          // isShared
	refs      atomic.Int32  // users, plus one while in heldDirs
	lastSweep atomic.Int64  // seconds since the epoch
}

func (d *heldDir) release() {
	if d.refs.Add(-1) == 0 {
		_ = unix.Close(d.fd)
	}
}

func newHeldDirs() *heldDirs {
	h := &heldDirs{absent: map[string]time.Time{}}
	h.dirs, _ = simplelru.NewLRU(1+maxHeldDirs, func(_ string, d *heldDir) { d.release() })
	return h
}

// find returns a cached directory with a reference added, or nil.
func (h *heldDirs) find(name string) *heldDir {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.dirs.Get(name)
	if ok {
		d.refs.Add(1)
	}
	return d
}

// put caches a directory in the place of another one of that name.
func (h *heldDirs) put(name string, d *heldDir) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	delete(h.absent, name)
	h.dirs.Remove(name)
	d.refs.Add(1)
	h.dirs.Add(name, d)
}

// drop removes d from the cache, as an open directory keeps its file system from being unmounted.
// missing says that the name has no directory any more.
func (h *heldDirs) drop(name string, d *heldDir, missing bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if current, _ := h.dirs.Peek(name); current == d {
		h.dirs.Remove(name)
	}
	if missing {
		maps.DeleteFunc(h.absent, func(_ string, since time.Time) bool { return time.Since(since) >= maxAbsence })
		h.absent[name] = time.Now()
	}
}

// isAbsent reports whether a cached directory disappeared a moment ago, so that it must not be
// created.
func (h *heldDirs) isAbsent(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	since, ok := h.absent[name]
	return ok && time.Since(since) < maxAbsence
}

// dropAll empties the cache.
func (h *heldDirs) dropAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dirs.Purge()
}

// close drops all directories for good.
func (h *heldDirs) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.dirs.Purge()
}

// remember stores the Stat of the storage's directory for when it is missing.
func (h *heldDirs) remember(st storage.Stat) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = st
	h.last.Device, h.last.Inode = 0, 0
}

// remembered returns the stored Stat, and false if the directory has never existed.
func (h *heldDirs) remembered() (storage.Stat, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.last != storage.Stat{}
}

// hold returns the directory currently at name, "" for the storage's own, and its Stat. The error
// wraps fs.ErrNotExist if there is none; links are not followed. Callers must call release.
func (s *Storage) hold(name string) (*heldDir, storage.Stat, error) {
	from, path := unix.AT_FDCWD, s.path
	if name != "" {
		root, _, err := s.hold("")
		if err != nil {
			return nil, storage.Stat{}, err
		}
		defer root.release()
		from, path = root.fd, name
	}
	known := s.held.find(name)
	if known != nil {
		if st, err := statAt(from, path); err == nil && st.SameObject(known.id) {
			return known, st, nil
		}
		s.held.drop(name, known, false)
		known.release()
	}
	fd, err := s.openat(from, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		if known != nil && storage.IsMissing(err) {
			s.held.drop(name, known, true)
		}
		return nil, storage.Stat{}, &fs.PathError{Op: "open", Path: filepath.Join(s.path, name), Err: err}
	}
	st, err := fstat(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, storage.Stat{}, err
	}
	d := &heldDir{fd: fd, id: st.Token, remote: isShared(fd)}
	d.refs.Store(1)
	if !strings.Contains(name, "/") { // each further level would be one more name to compare
		s.held.put(name, d)
	}
	return d, st, nil
}

const (
	// leasePoll is how often an open is retried that another process's lease forbids: Writers holds
	// its lease for microseconds.
	leasePoll = time.Millisecond
	// leaseLimit bounds that wait, as for locks: users hear "busy". The kernel would wait 45
	// seconds.
	leaseLimit = storage.LockLimit
)

// openat opens a name below an open directory, or an absolute path, without following links. With
// O_NONBLOCK, a lease of another process makes open fail with EAGAIN and not wait.
func (s *Storage) openat(from int, path string, flags int) (int, error) {
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	for start, evicted := time.Now(), false; ; {
		fd, err := openNoLinks(from, path, flags)
		if err == unix.ENOSYS || err == unix.EPERM { // an old kernel, or a sandbox without the call
			fd, err = walkat(from, path, flags)
		}
		switch {
		case err == unix.EINTR:
		case (err == unix.EMFILE || err == unix.ENFILE) && !evicted:
			evicted = true
			s.held.dropAll()
			if evict := s.onFull.Load(); evict != nil {
				(*evict)()
			}
		case err == unix.EAGAIN && time.Since(start) < leaseLimit:
			time.Sleep(leasePoll)
		case err == unix.EAGAIN:
			return -1, fmt.Errorf("%w: another process has a lease on it", storage.ErrLocked)
		case err == unix.ELOOP, err == unix.ENOTDIR: // behind a link or a file
			return -1, fmt.Errorf("%w (%w)", fs.ErrNotExist, err)
		default:
			return fd, err
		}
	}
}

// walkat is openat2 with RESOLVE_NO_SYMLINKS for other kernels. It opens part after part.
func walkat(from int, path string, flags int) (int, error) {
	dir := from
	for more := true; more; {
		var part string
		part, path, more = strings.Cut(path, "/")
		partFlags := flags
		if more {
			partFlags = oPath | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		switch {
		case part == "" && more: // an absolute path
			part = "/"
		case part == "":
			part = "."
		}
		fd, err := unix.Openat(dir, part, partFlags, 0)
		if dir != from {
			_ = unix.Close(dir)
		}
		if err != nil || !more {
			return fd, err
		}
		dir = fd
	}
	return dir, nil
}

// Writes go through an open directory, which may be moved or replaced at any moment. So each write
// checks before and after that the path still leads to it, and is undone if not.

// checkDir fails with ErrStale unless the path still leads to the directory.
func (p nameAt) checkDir() error {
	now, _, err := p.storage.hold(storage.Dir(p.name))
	if err == nil {
		defer now.release()
	}
	if storage.IsMissing(err) || err == nil && !now.id.SameObject(p.dir.id) {
		return fmt.Errorf("%w: the directory of %s was moved away or replaced", storage.ErrStale, p.name)
	}
	return err
}

// confirm returns the Stat of the name after a write to the file was. It fails with ErrStale if the
// name or its directory was replaced. If the whole path leads to the file, one call proves both.
func (p nameAt) confirm(was storage.Token) (storage.Stat, error) {
	st, err := statAt(unix.AT_FDCWD, p.storage.path+"/"+p.name)
	if err == nil && st.SameObject(was) {
		return st, nil
	}
	if st, err = p.statSame(was); err == nil {
		err = p.checkDir()
	}
	return st, err
}

// MkdirAll makes a directory ("" for the root) and its missing parents, with mode 0700 and, if we
// are root, the owner of the directory above. ENOTDIR: a file or link is in the way. ErrStale: a
// cached directory disappeared less than maxAbsence ago, or one is replaced meanwhile.
func (s *Storage) MkdirAll(dir string) error {
	if err := s.mkdirRoot(); dir == "" || err != nil {
		return err
	}
	if err := storage.CheckName(dir); err != nil {
		return err
	}
	for at := range len(dir) + 1 {
		if at < len(dir) && dir[at] != '/' {
			continue
		}
		p, err := s.openParent(dir[:at])
		if err != nil {
			return err
		}
		err = p.mkdir()
		p.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// mkdirRoot creates the storage's own directory if it has never existed.
func (s *Storage) mkdirRoot() error {
	root, _, err := s.hold("")
	switch {
	case err == nil:
		root.release()
		return nil
	case !storage.IsMissing(err) || s.above == nil:
		return err
	case s.held.isAbsent(""):
		return errAbsent(s.path)
	}
	dir, base := filepath.Split(s.path)
	if filepath.Clean(dir) != s.above.path { // behind a link: the disk of the target may not be mounted
		return err
	}
	return s.above.MkdirAll(base)
}

// errAbsent returns the error for a directory that isAbsent.
func errAbsent(dir string) error {
	const why = "%w: the directory %s went away a moment ago and may be about to be put back, " +
		"so it is not made anew yet"
	return fmt.Errorf(why, storage.ErrStale, dir)
}

// mkdir makes the directory p if it does not exist.
func (p nameAt) mkdir() error {
	d, _, err := p.storage.hold(p.name)
	switch {
	case err == nil:
		d.release()
		return nil
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return p.fail("mkdir", unix.ENOTDIR)
	case !storage.IsMissing(err):
		return err
	case p.storage.held.isAbsent(p.name):
		return errAbsent(p.name)
	}
	if err := unix.Mkdirat(p.dir.fd, p.base, storage.DirMode); err != nil {
		if err == unix.EEXIST { // another process created it just now
			return nil
		}
		return p.fail("mkdir", err)
	}
	fd, err := p.storage.openat(p.dir.fd, p.base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return p.fail("open", err)
	}
	defer unix.Close(fd)
	if err := giveToOwner(fd, p.dirStat); err != nil {
		return p.fail("mkdir", err)
	}
	if err := p.syncDir(); err != nil { // else a crash could lose the directory of a durable file
		return err
	}
	return p.checkDir() // the empty directory stays, as others may use it by now
}

// chown changes the owner of fd if it is another.
func chown(fd int, uid, gid uint32) error {
	now, err := fstat(fd)
	if err != nil || now.UID == uid && now.GID == gid {
		return err
	}
	return retry(func() error { return unix.Fchown(fd, int(uid), int(gid)) })
}

// giveToOwner gives a file that root made to the owner of its directory (docs/design.md section 8).
func giveToOwner(fd int, dir storage.Stat) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return chown(fd, dir.UID, dir.GID)
}

// CheckWritable fails if we, with our effective ids, cannot create a file in a directory ("" for
// the root). For a missing root it checks the directory above, in which MkdirAll creates it.
func (s *Storage) CheckWritable(dir string) error {
	d, _, err := s.hold(dir)
	if dir == "" && s.above != nil && storage.IsMissing(err) {
		return s.above.CheckWritable("")
	}
	if err != nil {
		return err
	}
	defer d.release()
	if err := unix.Faccessat(d.fd, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "write to", Path: filepath.Join(s.path, dir), Err: err}
	}
	return nil
}
