package dir

import (
	"errors"
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

// Storage is a directory of the file system: what stands at its path at the moment, which may be replaced
// and come back (docs/design.md section 6). While there is no directory at the path the storage is an empty one.
// No name leads out of it and no symbolic link below it is ever followed (section 7: contents are hostile until
// checked).
type Storage struct {
	storage.Unsupported // pending files

	root  rootDir
	held  heldDirs
	locks heldLocks
	above *Storage // the one that this is a directory of; nil: none
}

var _ storage.Storage = (*Storage)(nil)

// Open opens the directory at path, through symbolic links if there are any on it: this and Sub are
// the places where links are followed, once (docs/design.md section 7).
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

// Sub returns a directory of the storage as one of its own; through a symbolic link, which is resolved now. The
// directory may come later: until then, and while it is away, it is an empty one with the looks of s, and
// MkdirAll makes it.
func (s *Storage) Sub(name string) (*Storage, error) {
	if err := storage.CheckName(name); err != nil {
		return nil, err
	}
	real, err := resolvePath(filepath.Join(s.Path(), name))
	if err != nil {
		return nil, err
	}
	return &Storage{root: rootDir{path: real}, above: s}, nil
}

// Path returns the directory's path, links resolved.
func (s *Storage) Path() string { return s.root.path }

// Close lets go of the directory.
func (s *Storage) Close() error {
	s.held.close()
	return s.root.close()
}

// Statfs tells about the file system below.
func (s *Storage) Statfs(out *unix.Statfs_t) error {
	root, _, err := s.root.get()
	if err != nil {
		return err
	}
	defer root.release()
	return unix.Fstatfs(root.fd, out)
}

// openat opens name below the root, following no link.
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
	for start := time.Now(); ; {
		fd, err := openBeneath(root.fd, name, flags)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN && time.Since(start) < leaseLimit:
			time.Sleep(leasePoll) // another program's lease is in the way (O_NONBLOCK)
			continue
		case err == unix.ENOSYS || err == unix.EPERM: // an old kernel, or a sandbox that bars the call
			fd, err = walkat(root.fd, name, flags)
		}
		if err != nil {
			return -1, &fs.PathError{Op: "open", Path: name, Err: notFoundBehindLink(err)}
		}
		return fd, nil
	}
}

// notFoundBehindLink: below a link there is nothing to find.
func notFoundBehindLink(err error) error {
	if err == unix.ELOOP || err == unix.ENOTDIR {
		return fmt.Errorf("%w (%w)", fs.ErrNotExist, err)
	}
	return err
}

// walkat does what openat2 does for kernels without it: part by part, following nothing.
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

// Stat implements Storage.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	if name == "" {
		return s.statRoot()
	}
	if err := storage.CheckName(name); err != nil {
		return storage.Stat{}, err
	}
	if _, locked := s.locks.dir(name); locked {
		// The way to the name was found to hold no link when the lock was taken, a moment ago. One call is enough then:
		// whoever opens the file, or writes to it, walks that way again.
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
		return nameAt{dirfd: root.fd, base: base, name: name}.stat()
	}
	if dir = dir[:len(dir)-1]; canHold(dir) {
		d, _, err := s.hold(dir)
		if err == nil {
			defer d.release()
			return nameAt{dirfd: d.fd, base: base, name: name}.stat()
		}
		if !errors.Is(err, fs.ErrPermission) { // it may be one that can be walked and not be read
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

// statRoot is what the directory itself looks like: while it is away, what the one above or it itself looked like.
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

// Readlink implements Storage.
func (s *Storage) Readlink(name string) (string, error) {
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

// Open implements Storage. O_NONBLOCK keeps a pipe that took the file's place from hanging us.
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
func (o *file) Fd() (uintptr, error)                    { return o.f.Fd(), nil }

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
