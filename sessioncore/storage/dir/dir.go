package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Storage is the directory that is currently at a path; it may be replaced, removed and put back (docs/design.md
// section 6). While there is no directory the storage is empty. No name leads out of the directory, and symbolic
// links below it are never followed (section 7: contents are hostile until checked).
type Storage struct {
	root  rootDir
	held  heldDirs
	locks heldLocks
	swept sweeps
	spare atomic.Pointer[func()] // see OnNoDescriptor
	above *Storage               // the storage that Sub was called on; nil if none
	links []string               // other paths of the directory, see AlsoAt

	sharing Sharing
	asked   asked
}

var _ storage.Storage = (*Storage)(nil)

// Open opens the directory at path. Symbolic links on path are resolved once; only Open and Sub follow links
// (docs/design.md section 7). The directory must exist.
func Open(path string) (*Storage, error) {
	real, err := resolvePath(path)
	if err != nil {
		return nil, err
	}
	s := &Storage{root: rootDir{path: real}}
	if _, err := s.Stat(""); err != nil {
		return nil, err
	}
	return s, nil
}

// Sub returns a storage for the directory name of s. If name is a symbolic link, it is resolved now. The directory
// need not exist: while it is missing, the storage is empty, Stat of its root is that of s, and MkdirAll creates it.
func (s *Storage) Sub(name string) (*Storage, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	real, err := resolvePath(filepath.Join(s.Path(), name))
	if err != nil {
		return nil, err
	}
	return &Storage{root: rootDir{path: real}, above: s, sharing: s.sharing}, nil
}

// OnNoDescriptor sets what is called when there is no descriptor left to open a file: it should close some that others
// can do without. The open is then tried again.
func (s *Storage) OnNoDescriptor(spare func()) { s.spare.Store(&spare) }

// Path returns the directory's absolute path with links resolved.
func (s *Storage) Path() string { return s.root.path }

// Close closes the directory. Later calls fail with fs.ErrClosed.
func (s *Storage) Close() error {
	s.held.close()
	return s.root.close()
}

// Statfs calls fstatfs(2) on the directory.
func (s *Storage) Statfs(out *unix.Statfs_t) error {
	root, _, err := s.root.get()
	if err != nil {
		return err
	}
	defer root.release()
	return unix.Fstatfs(root.fd, out)
}

// openat opens name below the root without following links.
func (s *Storage) openat(name string, flags int) (int, error) {
	if name == "" {
		name = "."
	} else if err := storage.CheckName(name); err != nil {
		return -1, err
	}
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	root, _, err := s.root.get()
	if err != nil {
		return -1, err
	}
	defer root.release()
	for start, spared := time.Now(), false; ; {
		fd, err := openBeneath(root.fd, name, flags)
		switch {
		case (err == unix.EMFILE || err == unix.ENFILE) && !spared:
			s.held.close() // they are only kept to save calls
			if spare := s.spare.Load(); spare != nil {
				(*spare)()
			}
			spared = true
			continue
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && time.Since(start) < leaseLimit:
			time.Sleep(leasePoll) // another program's lease forbids the open (O_NONBLOCK)
			continue
		case err == unix.ENOSYS || err == unix.EPERM: // an old kernel, or a sandbox that forbids the call
			fd, err = walkat(root.fd, name, flags)
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: name, Err: notFoundBehindLink(err)}
		}
		return fd, nil
	}
}

// notFoundBehindLink makes the errors of a path that goes through a link or a file wrap fs.ErrNotExist.
func notFoundBehindLink(err error) error {
	if err == unix.ELOOP || err == unix.ENOTDIR {
		return fmt.Errorf("%w (%w)", fs.ErrNotExist, err)
	}
	return err
}

// walkat is openat2 with RESOLVE_NO_SYMLINKS for kernels without it: it opens one part after the other.
func walkat(root int, name string, flags int) (int, error) {
	dir := root
	for {
		part, rest, more := strings.Cut(name, "/")
		use := flags
		if more {
			use = oPath | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		}
		fd, err := unix.Openat(dir, part, use, 0)
		if dir != root {
			_ = unix.Close(dir)
		}
		if err != nil || !more {
			return fd, err
		}
		dir, name = fd, rest
	}
}

// Stat implements storage.Files.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	if name == "" {
		return s.statRoot()
	}
	st, err := s.statBelow(name)
	if err == nil && st.Kind == storage.KindLink {
		st.Link, err = s.readlink(name)
	}
	return st, err
}

func (s *Storage) statBelow(name string) (storage.Stat, error) {
	if err := storage.CheckName(name); err != nil {
		return storage.Stat{}, err
	}
	if _, locked := s.locks.dir(name); locked {
		// The path to the name had no link when the lock was taken, a moment ago, so that one call suffices. Opening
		// the file or writing to it walks the path again.
		if st, err := s.statPath(name); err == nil {
			return st, nil
		}
	}
	dir, base := path.Split(name)
	if dir == "" {
		root, _, err := s.root.get()
		if err != nil {
			return storage.Stat{}, err
		}
		defer root.release()
		return nameAt{dirfd: root.fd, base: base, name: name, storage: s, held: root}.look()
	}
	if dir = dir[:len(dir)-1]; canHold(dir) {
		d, _, err := s.hold(dir)
		if err == nil {
			defer d.release()
			return nameAt{dirfd: d.fd, base: base, name: name, storage: s, held: d}.look()
		}
		if !errors.Is(err, fs.ErrPermission) { // the directory may be searchable but not readable
			return storage.Stat{}, err
		}
	}
	fd, err := s.openat(name, oPath)
	if err != nil {
		return storage.Stat{}, err
	}
	defer unix.Close(fd)
	return fstat(fd)
}

// statRoot returns the Stat of the storage's own directory. While the directory is missing it returns the Stat of the
// one above, or else the last one it had.
func (s *Storage) statRoot() (storage.Stat, error) {
	root, st, err := s.root.get()
	if err == nil {
		root.release()
		if s.above == nil {
			s.root.remember(st)
		}
		return st, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return storage.Stat{}, err
	}
	if s.above != nil {
		return s.above.statRoot()
	}
	if looks, ok := s.root.remembered(); ok {
		return looks, nil
	}
	return storage.Stat{}, err
}

func statOf(st *unix.Stat_t) storage.Stat {
	kind := storage.KindOther
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		kind = storage.KindFile
	case unix.S_IFDIR:
		kind = storage.KindDir
	case unix.S_IFLNK:
		kind = storage.KindLink
	}
	return storage.Stat{
		Token: storage.Token{
			Device:   uint64(st.Dev),
			Inode:    st.Ino,
			Size:     st.Size,
			Modified: st.Mtim.Nano(),
			Changed:  st.Ctim.Nano(),
		},
		Kind: kind,
		Mode: uint32(st.Mode) & 0o777,
		UID:  st.Uid,
		GID:  st.Gid,
	}
}

// readlink returns where a link leads, as stored.
func (s *Storage) readlink(name string) (string, error) {
	fd, err := s.openat(name, oPath)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: err}
	}
	return string(buf[:n]), nil
}

// Open implements storage.Files. O_NONBLOCK prevents a hang on a FIFO that replaced the file.
func (s *Storage) Open(name string) (storage.Object, error) {
	fd, err := s.openat(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	o := &file{f: os.NewFile(uintptr(fd), name)}
	st, err := o.Stat()
	if err == nil && st.Kind != storage.KindFile {
		err = fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	if err != nil {
		_ = o.Close()
		return nil, err
	}
	return o, nil
}

// file is an open regular file.
type file struct{ f *os.File }

var _ storage.Object = (*file)(nil)

func (o *file) ReadAt(p []byte, off int64) (int, error) { return o.f.ReadAt(p, off) }
func (o *file) Close() error                            { return o.f.Close() }

// Fd returns the file descriptor, which is valid until Close.
func (o *file) Fd() uintptr { return o.f.Fd() }

func (o *file) Stat() (storage.Stat, error) {
	var st unix.Stat_t
	conn, err := o.f.SyscallConn()
	if err != nil {
		return storage.Stat{}, err
	}
	var statErr error
	err = conn.Control(func(fd uintptr) { statErr = unix.Fstat(int(fd), &st) })
	if err = errors.Join(err, statErr); err != nil {
		return storage.Stat{}, err
	}
	return statOf(&st), nil
}
