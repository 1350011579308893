package dir

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// maxAbsence is how long a missing directory of a storage is not created again. A user who restores
// it removes it first; in one that we created, `mv backup sessions` would put it a level too deep.
const maxAbsence = time.Minute

// nameAt is a name in an open directory, for openat(2) and the like. Its calls follow no link and
// stay in that directory even if it is moved. The descriptor (O_PATH) is closed at the end of each
// call of a storage: an open directory keeps its file system from being unmounted.
type nameAt struct {
	storage *Storage
	dir     int    // the open directory
	base    string // the name in dir
	name    string // path below the storage's root
}

// openDir opens the directory name, "" for the storage's own. The error wraps fs.ErrNotExist if
// there is none; links are not followed.
func (s *Storage) openDir(name string) (fd int, err error) {
	path := filepath.Join(s.path, name)
	fd, err = s.openat(unix.AT_FDCWD, path, oPath|unix.O_DIRECTORY)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	if !s.existed.Load() {
		s.existed.Store(true)
	}
	return fd, nil
}

// openParent opens the directory of name. Callers must call close.
func (s *Storage) openParent(name string) (nameAt, error) {
	err := storage.CheckName(name)
	if err != nil {
		return nameAt{}, err
	}
	dir, err := s.openDir(storage.Dir(name))
	return nameAt{
		storage: s,
		dir:     dir,
		base:    path.Base(name),
		name:    name,
	}, err
}

// openParentToWrite is openParent for a write. It fails with ErrStale if the directory where the
// lock of name is held was replaced.
func (s *Storage) openParentToWrite(name string) (nameAt, error) {
	p, err := s.openParent(name)
	if err != nil {
		return nameAt{}, err
	}
	locked, ok := s.locks.dirs.Load(name)
	if ok && !p.isIn(locked.(storage.Token)) {
		p.close()
		const why = "%w: the directory of %s was replaced while its lock was held"
		return nameAt{}, fmt.Errorf(why, storage.ErrStale, name)
	}
	return p, nil
}

func (p nameAt) close() { _ = unix.Close(p.dir) }

// isIn reports whether the name is in a directory. The inode number of an open one is not reused.
func (p nameAt) isIn(dir storage.Token) bool {
	st, err := fstat(p.dir)
	return err == nil && st.SameObject(dir)
}

// reopenDir opens the directory for more than the names in it.
func (p nameAt) reopenDir() (*os.File, error) {
	fd, err := p.storage.openat(p.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, p.fail("open the directory of", err)
	}
	return os.NewFile(uintptr(fd), storage.Dir(p.name)), nil
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
	start := time.Now()
	evicted := false // once: the caller may hold all descriptors itself
	for {
		fd, err := openNoLinks(from, path, flags)
		if err == unix.ENOSYS || err == unix.EPERM { // an old kernel, or a sandbox without the call
			fd, err = walkat(from, path, flags)
		}
		switch {
		case err == unix.EINTR:
		case (err == unix.EMFILE || err == unix.ENFILE) && !evicted:
			evicted = true
			evict := s.onFull.Load()
			if evict != nil {
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
	held, err := fstat(p.dir)
	if err != nil {
		return err
	}
	now, err := p.storage.openParent(p.name)
	if err == nil {
		defer now.close()
	}
	if storage.IsMissing(err) || err == nil && !now.isIn(held.Token) {
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
	st, err = p.statSame(was)
	if err == nil {
		err = p.checkDir()
	}
	return st, err
}

// MkdirAll makes a directory ("" for the root) and its missing parents, with mode 0700 and, if we
// are root, the owner of the directory above. ENOTDIR: a file or link is in the way. ErrStale: the
// root disappeared less than maxAbsence ago, or a directory is replaced meanwhile.
func (s *Storage) MkdirAll(dir string) error {
	err := s.mkdirRoot()
	if dir == "" || err != nil {
		return err
	}
	err = storage.CheckName(dir)
	if err != nil {
		return err
	}
	made := ""
	for part := range strings.SplitSeq(dir, "/") {
		made = path.Join(made, part)
		err := s.mkdirIn(made)
		if err != nil {
			return err
		}
	}
	return nil
}

// mkdirIn makes a directory in a parent that is there, unless it exists.
func (s *Storage) mkdirIn(dir string) error {
	p, err := s.openParent(dir)
	if err != nil {
		return err
	}
	defer p.close()
	return p.mkdir()
}

// mkdirRoot creates the storage's own directory if it has never existed, or long ago.
func (s *Storage) mkdirRoot() error {
	root, err := s.openDir("")
	if err == nil {
		s.missing.Store(0)
		return unix.Close(root)
	}
	if !storage.IsMissing(err) || s.above == nil {
		return err
	}
	dir, base := filepath.Split(s.path)
	if filepath.Clean(dir) != s.above.path { // behind a link: the disk of the target may not be mounted
		return err
	}
	now := time.Now().UnixNano()
	s.missing.CompareAndSwap(0, now)
	if s.existed.Load() && now-s.missing.Load() < int64(maxAbsence) {
		const why = "%w: the directory %s went away a moment ago and may be about to be put back, " +
			"so it is not made anew yet"
		return fmt.Errorf(why, storage.ErrStale, s.path)
	}
	return s.above.MkdirAll(base)
}

// mkdir makes the directory p if it does not exist.
func (p nameAt) mkdir() error {
	st, err := p.stat()
	switch {
	case err == nil && st.Kind == storage.KindDir:
		return nil
	case err == nil:
		return p.fail("mkdir", unix.ENOTDIR)
	case !storage.IsMissing(err):
		return err
	}
	err = unix.Mkdirat(p.dir, p.base, storage.DirMode)
	if err != nil {
		if err == unix.EEXIST { // another process created it just now
			return nil
		}
		return p.fail("mkdir", err)
	}
	fd, err := p.storage.openat(p.dir, p.base, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return p.fail("open", err)
	}
	defer unix.Close(fd)
	err = p.giveToOwner(fd)
	if err != nil {
		return p.fail("mkdir", err)
	}
	err = p.syncDir()
	if err != nil { // else a crash could lose the directory of a durable file
		return err
	}
	return p.checkDir() // the empty directory stays, as others may use it by now
}

// chown changes the owner of fd if it is another.
func chown(fd int, uid, gid uint32) error {
	now, err := fstat(fd)
	if err != nil {
		return err
	}
	isSame := now.UID == uid && now.GID == gid
	if isSame {
		return nil
	}
	return retry(func() error {
		return unix.Fchown(fd, int(uid), int(gid))
	})
}

// giveToOwner gives a file that root made to the owner of its directory (docs/design.md section 8).
func (p nameAt) giveToOwner(fd int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	dir, err := fstat(p.dir)
	if err != nil {
		return err
	}
	return chown(fd, dir.UID, dir.GID)
}

// CheckWritable fails if we, with our effective ids, cannot create a file in a directory ("" for
// the root). For a missing root it checks the directory above, where MkdirAll creates it.
func (s *Storage) CheckWritable(dir string) error {
	d, err := s.openDir(dir)
	if dir == "" && s.above != nil && storage.IsMissing(err) {
		return s.above.CheckWritable("")
	}
	if err != nil {
		return err
	}
	defer unix.Close(d)
	err = unix.Faccessat(d, ".", unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if err != nil {
		return &fs.PathError{Op: "write to", Path: filepath.Join(s.path, dir), Err: err}
	}
	return nil
}
