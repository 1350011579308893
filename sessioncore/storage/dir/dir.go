package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Storage is the directory that is currently at a path; it may be replaced, removed and restored
// (docs/design.md section 6). Without a directory the storage is empty. No name leads out of the
// directory, and links below it are never followed (section 7: contents are hostile until checked).
type Storage struct {
	path    string // of the directory: absolute and without links
	locks   heldLocks
	onFull  atomic.Pointer[func()]        // see OnNoDescriptor
	above   *Storage                      // the storage of Sub, or nil
	existed atomic.Bool                   // the directory
	missing atomic.Int64                  // when it was to be made though it existed, in ns since the epoch; 0 if it is there
	last    atomic.Pointer[storage.Stat]  // of the directory, without its identity, which a restored one has not
	swept   *lru.Cache[string, time.Time] // when each directory was swept last
	links   []string                      // other paths of the directory, see AlsoAt
	sys     calls
	sharing Sharing
	lookup  serverLookup
}

var _ storage.Storage = (*Storage)(nil)

// Open opens an existing directory. Links in path are resolved once; only Open and Sub follow links
// (docs/design.md section 7).
func Open(path string) (*Storage, error) {
	resolved, err := resolvePath(path)
	if err != nil {
		return nil, err
	}
	s := newStorage(resolved)
	_, err = s.Stat("")
	if err != nil {
		return nil, err
	}
	return s, nil
}

// newStorage returns a storage of the files in a directory, which need not exist.
func newStorage(path string) *Storage {
	s := &Storage{path: path, sys: kernel}
	s.swept, _ = lru.New[string, time.Time](maxSwept)
	s.locks.foreign, _ = lru.New[string, foreignLock](maxForeignLocks)
	return s
}

// Sub returns a storage for the directory name of s, which may be a link and may be missing: then
// the storage is empty, Stat of its root returns the state of s, and MkdirAll creates it.
func (s *Storage) Sub(name string) (*Storage, error) {
	err := storage.CheckName(name)
	if err != nil {
		return nil, err
	}
	resolved, err := resolvePath(filepath.Join(s.path, name))
	if err != nil {
		return nil, err
	}
	sub := newStorage(resolved)
	sub.above = s
	sub.sharing = s.sharing
	return sub, nil
}

// OnNoDescriptor registers a function that closes unneeded descriptors. If there are none left to
// open a file, it is called and the open tried once more.
func (s *Storage) OnNoDescriptor(evict func()) { s.onFull.Store(&evict) }

// Path returns the directory's absolute path with links resolved.
func (s *Storage) Path() string { return s.path }

// AlsoAt adds paths under which clients may know the storage's directory. Clients use an outer lock
// for each path, so writers take all of them. Paths that lead elsewhere are ignored. It is called
// before the storage is used.
func (s *Storage) AlsoAt(paths ...string) {
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil || slices.Contains(s.Paths(), abs) {
			continue
		}
		resolved, err := resolvePath(abs)
		if err == nil && resolved == s.path {
			s.links = append(s.links, abs)
		}
	}
}

// Paths returns the absolute paths under which clients may know the directory, Path first.
func (s *Storage) Paths() []string { return append([]string{s.path}, s.links...) }

// Statfs calls fstatfs(2) on the directory.
func (s *Storage) Statfs(out *unix.Statfs_t) error {
	root, err := s.openDir("")
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return unix.Fstatfs(root, out)
}

// Stat implements storage.Files.
func (s *Storage) Stat(name string) (storage.Stat, error) {
	if name == "" {
		return s.statRoot()
	}
	p, err := s.openParent(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer p.close()
	st, err := p.statFresh()
	if err == nil && st.Kind == storage.KindLink {
		st.Link, err = p.readlink()
	}
	return st, err
}

// statRoot returns the Stat of the storage's directory. While it is missing that is the Stat of the
// one above, or else its own last one.
func (s *Storage) statRoot() (storage.Stat, error) {
	root, err := s.openDir("")
	if err == nil {
		defer unix.Close(root)
		st, err := fstat(root)
		if err == nil && s.above == nil {
			last := st
			last.Device = 0
			last.Inode = 0
			s.last.Store(&last)
		}
		return st, err
	}
	if !storage.IsMissing(err) {
		return storage.Stat{}, err
	}
	if s.above != nil {
		return s.above.statRoot()
	}
	last := s.last.Load()
	if last == nil {
		return storage.Stat{}, err
	}
	return *last, nil
}

// stat returns the state of the name without following a link.
func (p nameAt) stat() (storage.Stat, error) {
	st, err := statAt(p.dir, p.base)
	return st, p.fail("stat", err)
}

// fstat is fstat(2). The Stat is zero after an error.
func fstat(fd int) (storage.Stat, error) {
	var st unix.Stat_t
	err := retry(func() error {
		return unix.Fstat(fd, &st)
	})
	if err != nil {
		return storage.Stat{}, os.NewSyscallError("fstat", err)
	}
	return statOf(&st), nil
}

// statAt is fstatat(2) without following a link. The Stat is zero after an error.
func statAt(dir int, name string) (storage.Stat, error) {
	var st unix.Stat_t
	err := retry(func() error {
		return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		return storage.Stat{}, err
	}
	return statOf(&st), nil
}

// statOf converts the state of a file.
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

// Open implements storage.Files. One call walks the whole path.
func (s *Storage) Open(name string) (storage.Object, error) {
	fd, err := s.openToRead(name)
	if err != nil {
		return nil, err
	}
	return &file{name: name, fd: fd}, nil
}

// OpenFile is Open for a caller that has the kernel copy the file.
func (s *Storage) OpenFile(name string) (*os.File, error) {
	fd, err := s.openToRead(name)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// openToRead opens a file by its path, without a descriptor of its directory.
func (s *Storage) openToRead(name string) (fd int, err error) {
	err = storage.CheckName(name)
	if err != nil {
		return -1, err
	}
	whole := nameAt{
		storage: s,
		dir:     unix.AT_FDCWD,
		base:    s.path + "/" + name,
		name:    name,
	}
	fd, _, err = whole.open(unix.O_RDONLY)
	return fd, err
}

// ReadAhead implements storage.Files: it does nothing.
func (s *Storage) ReadAhead([]string) {}

// retry repeats call while it fails with EINTR.
func retry(call func() error) error {
	for {
		err := call()
		if err != unix.EINTR {
			return err
		}
	}
}

// fail wraps the error, if any, of a call on the name.
func (p nameAt) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: p.name, Err: err}
}

const maxLinks = 40 // in a path, as in the kernel

// resolvePath returns an absolute path without links. Its last parts may be missing; a dangling
// link is resolved to its target.
func resolvePath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for range maxLinks {
		resolved, err := filepath.EvalSymlinks(path)
		if !errors.Is(err, fs.ErrNotExist) {
			return resolved, err
		}
		dir, base := filepath.Split(path)
		dir, err = resolvePath(filepath.Clean(dir))
		if err != nil {
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
