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

// rootDir is the directory of a Storage: a path, and the open directory that was last found there.
//
// The path is fixed and has no links. What is at the path may be replaced, removed, mounted over and put back at any
// time, so each use compares the open directory with the path: one lstat. A link that replaces it or a directory
// above it is not followed; the storage is then empty.
type rootDir struct {
	path string

	mu       sync.Mutex   // guards the fields below
	open     *heldDir     // nil if none
	lastStat storage.Stat // last result of Stat
	away     absence
	closed   bool
}

// get returns the open directory currently at the path and its Stat. The error wraps fs.ErrNotExist if there is no
// directory. Callers must call release.
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

// reopen opens what is at the path now and stores it in place of before.
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
		r.open.release() // an open directory would keep its file system from being unmounted
	}
	r.open = d
	return d, st, err
}

// openPath opens the directory at the path and returns it with one reference.
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
	d := &heldDir{fd: fd, id: st.Token, remote: isShared(fd)}
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

// remember stores the Stat that the directory shows while it is missing.
func (r *rootDir) remember(st storage.Stat) {
	st.Device, st.Inode = 0, 0 // what comes back is another object
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastStat = st
}

// remembered returns the last Stat of the directory, and false if it has never existed.
func (r *rootDir) remembered() (storage.Stat, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastStat, r.lastStat != storage.Stat{}
}

// isAway reports whether the directory disappeared less than maxAbsence ago, so that it must not be created.
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

// maxAbsence is how long a directory that disappeared is not created again. Users who replace or restore a directory
// move or remove it first, and what they then put there would end up inside one that we created: `mv backup
// sessions`, `cp -r backup sessions`.
const maxAbsence = time.Minute

// absence is the time since when a directory has been missing. It is zero if the directory exists or has never
// existed.
type absence struct{ since time.Time }

func (a *absence) begins() {
	if a.since.IsZero() {
		a.since = time.Now()
	}
}

func (a absence) lasts() bool { return !a.since.IsZero() && time.Since(a.since) < maxAbsence }

// errAway returns the error for a directory that is not created because of maxAbsence.
func errAway(dir string) error {
	return fmt.Errorf("%w: the directory %s went away a moment ago and may be about to be put back, so it is not made anew yet",
		storage.ErrStale, dir)
}

const maxLinks = 40 // in a path, as in the kernel

// resolvePath returns an absolute path without links. Trailing parts need not exist; a dangling link is resolved to
// its target.
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
