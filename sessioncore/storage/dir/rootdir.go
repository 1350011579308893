package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// rootDir is the directory that a Storage is of: a path, and the directory that was found there last, open.
//
// The path is fixed and holds no link. What stands there may be replaced, removed, mounted over and put back at
// any time, so each use compares what is open with what the path stands for: one lstat. A link that is put in its
// place, or in that of one above it, is not followed to another directory: to us there is nothing then.
type rootDir struct {
	path string

	mu       sync.Mutex   // guards what follows
	open     *heldDir     // nil: none
	lastStat storage.Stat // what Stat said of it last
	away     absence
	closed   bool
}

// get returns the open directory that stands at the path at this moment, and what it is; the caller releases it.
// The error wraps fs.ErrNotExist where there is no directory.
func (r *rootDir) get() (*heldDir, storage.Stat, error) {
	r.mu.Lock()
	d, closed := r.open, r.closed
	if d != nil {
		d.refs.Add(1)
	}
	r.mu.Unlock()
	if closed {
		return nil, storage.Stat{}, fs.ErrClosed
	}
	if d != nil {
		st, err := nameAt{dirfd: unix.AT_FDCWD, base: r.path, name: r.path}.stat()
		if err == nil && st.SameObject(d.id) {
			return d, st, nil
		}
		d.release()
	}
	return r.reopen(d)
}

// reopen opens what stands at the path now, in the place of what stood there before.
func (r *rootDir) reopen(before *heldDir) (*heldDir, storage.Stat, error) {
	d, st, err := r.openPath()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		if errors.Is(err, fs.ErrNotExist) && r.open != nil && r.open == before {
			r.away.begins()
		}
	case r.closed:
		d.release()
		return nil, storage.Stat{}, fs.ErrClosed
	default:
		r.away = absence{}
		d.refs.Add(1)
	}
	if r.open != nil {
		r.open.release() // what is gone must not keep its file system from being unmounted
	}
	r.open = d
	return d, st, err
}

// openPath opens the directory at the path with one reference.
func (r *rootDir) openPath() (*heldDir, storage.Stat, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC | unix.O_NOFOLLOW
	var fd int
	err := retry(func() (err error) {
		fd, err = openNoLinks(r.path, flags)
		if err == unix.ENOSYS || err == unix.EPERM { // as in openat
			fd, err = walkPath(r.path, flags)
		}
		return err
	})
	if err != nil {
		return nil, storage.Stat{}, &fs.PathError{Op: "open", Path: r.path, Err: notFoundBehindLink(err)}
	}
	st, err := fstat(fd)
	if err != nil {
		_ = unix.Close(fd)
		return nil, storage.Stat{}, err
	}
	d := &heldDir{fd: fd, id: st.Token}
	d.refs.Store(1)
	return d, st, nil
}

// walkPath is walkat for an absolute path.
func walkPath(path string, flags int) (int, error) {
	top, err := unix.Open("/", oPath|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(top)
	if path = strings.TrimPrefix(path, "/"); path == "" {
		path = "."
	}
	return walkat(top, path, flags)
}

// remember keeps what the directory looks like for the time in which it is away.
func (r *rootDir) remember(st storage.Stat) {
	st.Device, st.Inode = 0, 0 // what is away is not the same object as what comes back
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastStat = st
}

// remembered returns what the directory looked like last; false where it was never there.
func (r *rootDir) remembered() (storage.Stat, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastStat, r.lastStat != storage.Stat{}
}

// isAway reports whether the directory went away so recently that it must not be made anew.
func (r *rootDir) isAway() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away.lasts()
}

func (r *rootDir) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil {
		r.open.release()
	}
	r.open, r.closed = nil, true
	return nil
}

// maxAbsence is for how long a directory that was there and went away is not made anew. Somebody who replaces or
// restores one moves or removes it first, and what he then puts in its place would land inside the one that we
// made: `mv backup sessions`, `cp -r backup sessions`.
const maxAbsence = time.Minute

// absence is the time in which a directory is away. The zero value is one that is there, or never was.
type absence struct{ since time.Time }

func (a *absence) begins() {
	if a.since.IsZero() {
		a.since = time.Now()
	}
}

func (a absence) lasts() bool { return !a.since.IsZero() && time.Since(a.since) < maxAbsence }

// errAway says why a directory is not made.
func errAway(dir string) error {
	return fmt.Errorf("%w: the directory %s went away a moment ago and may be about to be put back, so it is not made anew yet",
		storage.ErrStale, dir)
}

const maxLinks = 40 // on a path, as in the kernel

// resolvePath returns a path as absolute and without links. Its last parts need not be there: then they are where they
// would be, also behind a link that leads to nothing yet.
func resolvePath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return real, err
		}
		dir, base := filepath.Split(path)
		if dir, err = resolvePath(filepath.Clean(dir)); err != nil {
			return "", err
		}
		path = filepath.Join(dir, base)
		target, err := os.Readlink(path)
		if err != nil {
			return path, nil
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", &fs.PathError{Op: "resolve", Path: path, Err: unix.ELOOP}
}
