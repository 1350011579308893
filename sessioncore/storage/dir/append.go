package dir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// calls are the system calls whose failure writers must survive. Tests replace them with failing ones.
type calls struct {
	write     func(fd int, p []byte) (int, error)
	ftruncate func(fd int, size int64) error
	fsync     func(fd int) error
	renameat2 func(fromDir int, from string, toDir int, to string, flags uint) error
}

// kernel has the real calls; it is never modified.
var kernel = calls{
	write:     unix.Write,
	ftruncate: unix.Ftruncate,
	fsync:     unix.Fsync,
	renameat2: renameat2,
}

// retry repeats call while it fails with EINTR.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// writeOnce is one write(2), repeated only if a signal interrupted it before the first byte. (Go handles SIGXFSZ, so
// a file size limit shows as a short write or EFBIG and does not end the process.)
func (c calls) writeOnce(fd int, p []byte) (n int, err error) {
	err = retry(func() error {
		n, err = c.write(fd, p)
		return err
	})
	return max(n, 0), err
}

// nameAt is a name in an open directory, as openat(2) takes it. Calls on it stay in that directory even if the directory is
// moved, and follow no link.
type nameAt struct {
	storage *Storage
	dir     *heldDir
	was     storage.Stat // of dir, when the path led to it
	base    string       // the name in dir
	name    string       // path below the storage's root
}

// openParent opens the directory that contains name. Callers must call close.
func (s *Storage) openParent(name string) (nameAt, error) {
	if err := storage.CheckName(name); err != nil {
		return nameAt{}, err
	}
	dir, st, err := s.hold(storage.Dir(name))
	return nameAt{storage: s, dir: dir, was: st, base: path.Base(name), name: name}, err
}

// openParentToWrite is openParent for a write. It fails with ErrStale if the lock of name is held in a directory that
// the path no longer leads to.
func (s *Storage) openParentToWrite(name string) (nameAt, error) {
	p, err := s.openParent(name)
	if err != nil {
		return nameAt{}, err
	}
	if locked, ok := s.locks.dir(name); ok && !p.dir.id.SameObject(locked) {
		p.close()
		return nameAt{}, fmt.Errorf("%w: the directory of %s was replaced while its lock was held", storage.ErrStale, name)
	}
	return p, nil
}

func (p nameAt) close() { p.dir.release() }

// beside returns another name in the same directory. It is closed with p.
func (p nameAt) beside(base string) nameAt {
	p.base = base
	return p
}

// fail wraps an error of a call on the name.
func (p nameAt) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: p.name, Err: err}
}

// stat returns what the name currently refers to, without following a link.
func (p nameAt) stat() (storage.Stat, error) {
	st, err := statAt(p.dir.fd, p.base)
	if err != nil {
		return storage.Stat{}, p.fail("stat", err)
	}
	return st, nil
}

// readlink returns where a link leads, as stored.
func (p nameAt) readlink() (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(p.dir.fd, p.base, buf)
	if err != nil {
		return "", p.fail("readlink", err)
	}
	return string(buf[:n]), nil
}

// open opens the name if it is a regular file. O_NONBLOCK also prevents a hang on a FIFO.
func (p nameAt) open(flags int) (int, storage.Stat, error) {
	fd, err := p.storage.openat(p.dir.fd, p.base, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	var st storage.Stat
	switch {
	case err == unix.EISDIR || err == unix.ENXIO: // a directory; a FIFO or socket that nobody has open at the other end
		return -1, st, fmt.Errorf("%w: %s", storage.ErrNotRegular, p.name)
	case err != nil:
		return -1, st, p.fail("open", err)
	}
	st, err = fstat(fd)
	if err == nil && st.Kind != storage.KindFile {
		err = fmt.Errorf("%w: %s", storage.ErrNotRegular, p.name)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, storage.Stat{}, err
	}
	return fd, st, nil
}

// create creates the file, of mode 0600 and open for reading and writing. It fails with EEXIST if the name exists.
func (p nameAt) create() (fd int, err error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	err = retry(func() error {
		fd, err = unix.Openat(p.dir.fd, p.base, flags, storage.FileMode)
		return err
	})
	return fd, err
}

// unlink removes the name.
func (p nameAt) unlink() error {
	return retry(func() error { return unix.Unlinkat(p.dir.fd, p.base, 0) })
}

// renameNew gives a file another name and fails with EEXIST if that exists, also on file systems without RENAME_NOREPLACE.
func (p nameAt) renameNew(sys calls, to nameAt) error {
	err := retry(func() error { return sys.renameat2(p.dir.fd, p.base, to.dir.fd, to.base, renameNoReplace) })
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	if err := unix.Linkat(p.dir.fd, p.base, to.dir.fd, to.base, 0); err != nil {
		return err
	}
	_ = p.unlink()
	return nil
}

// exchange swaps two names. The error is ENOTSUP on file systems that cannot do that.
func (p nameAt) exchange(with nameAt) error {
	err := retry(func() error {
		return p.storage.sys.renameat2(p.dir.fd, p.base, with.dir.fd, with.base, renameExchange)
	})
	if err == unix.EINVAL || err == unix.ENOSYS {
		return unix.ENOTSUP
	}
	return err
}

func fstat(fd int) (storage.Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return storage.Stat{}, os.NewSyscallError("fstat", err)
	}
	return statOf(&st), nil
}

// statAt is fstatat(2) without following a link.
func statAt(dir int, name string) (storage.Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return storage.Stat{}, err
	}
	return statOf(&st), nil
}

// Append implements storage.Journal: one write(2) of all data (docs/design.md section 4). Callers that need the file to end
// in a newline first put one at the start of data (storage.EndsInNewline). In a shared directory the data is read back.
//
// A failed or short write is undone; the error then wraps the errno (ENOSPC, EDQUOT, EFBIG, EIO, …), or
// io.ErrShortWrite if there is none. ErrStale: a program without the lock gave the name to another file, or the
// directory was replaced, and the data is not in it; or another machine wrote to the same place, and whole lines at the
// beginning of data may be in the file. fs.ErrNotExist, ErrNotRegular and ErrBadName as for Open;
// ErrLocked: another process's lease forbids writing.
func (s *Storage) Append(name string, data []byte) (storage.Stat, error) {
	p, err := s.openParentToWrite(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer p.close()
	// Reading is needed too: takeBack compares before it truncates. The descriptor is closed at once because an open
	// one would make us look like a live client (Writers).
	fd, before, err := p.open(unix.O_RDWR | unix.O_APPEND)
	if err != nil {
		return storage.Stat{}, err
	}
	defer unix.Close(fd)

	var after storage.Stat
	err = s.sys.appendOnce(fd, data)
	if err == nil && p.shared() {
		err = p.arrived(fd, before, data)
	}
	if err == nil {
		after, err = p.confirm(before.Token)
	}
	if err != nil {
		return storage.Stat{}, p.fail("append", s.sys.takeBack(fd, before.Size, data, err))
	}
	return after, nil
}

// appendOnce writes data in one call. After a short write it tries to write the rest, as the kernel then reports the
// reason.
func (c calls) appendOnce(fd int, data []byte) error {
	n, err := c.writeOnce(fd, data)
	if err == nil && n < len(data) {
		if _, err = c.writeOnce(fd, data[n:]); err == nil {
			err = io.ErrShortWrite
		}
	}
	return err
}

// statSame returns what the name currently refers to. It fails with ErrStale unless that is the object was: a client
// without the lock may have renamed a new file over the one that we had open.
func (p nameAt) statSame(was storage.Token) (storage.Stat, error) {
	now, err := p.stat()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !now.SameObject(was) {
		err = storage.ErrStale
	}
	return now, err
}

// checkSame fails with ErrStale unless the name refers to the object was.
func (p nameAt) checkSame(was storage.Token) error {
	_, err := p.statSame(was)
	return err
}

// takeBack truncates the file to size after a failed append and returns why. If the bytes beyond size are not a
// prefix of data, a program without the lock appended too, and truncating would lose its data. Then our part stays as
// a torn line, which readers skip.
func (c calls) takeBack(fd int, size int64, data []byte, why error) error {
	now, err := fstat(fd)
	if err != nil || now.Size == size {
		return undone(why, err)
	}
	ours, err := endIs(fd, size, now.Size, data)
	if err == nil && !ours {
		err = errors.New("another program wrote to the file's end")
	}
	if err == nil {
		err = retry(func() error { return c.ftruncate(fd, size) })
	}
	return undone(why, err)
}

// undone adds to an error the one, if any, for which what went before was not taken back. The errno of the first counts.
func undone(why, err error) error {
	if err != nil {
		return fmt.Errorf("%w (and not taken back: %v)", why, err)
	}
	return why
}

// endIs reports whether the file's bytes in [from, to) are a prefix of data.
func endIs(fd int, from, to int64, data []byte) (bool, error) {
	if to < from || to-from > int64(len(data)) {
		return false, nil
	}
	there := make([]byte, to-from)
	n, err := preadFull(fd, there, from)
	return err == nil && n == len(there) && bytes.HasPrefix(data, there), err
}

// preadFull reads from offset off until p is full or the file ends.
func preadFull(fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		var got int
		err := retry(func() (err error) {
			got, err = unix.Pread(fd, p[n:], off+int64(n))
			return err
		})
		if err != nil || got == 0 {
			return n, err
		}
		n += got
	}
	return n, nil
}

// pwriteAll writes all of p at offset off.
func pwriteAll(fd int, p []byte, off int64) error {
	for len(p) > 0 {
		var n int
		err := retry(func() (err error) {
			n, err = unix.Pwrite(fd, p, off)
			return err
		})
		if err != nil {
			return err
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// overwrite is Replace for a file that gets another beginning: one pwrite(2), and for what is added one write(2). So who
// has the file open goes on with it. A title slot lies within one page, so that readers see the old bytes or the new ones.
func (s *Storage) overwrite(name string, r storage.Replacement) (storage.Stat, error) {
	p, err := s.openParentToWrite(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer p.close()
	fd, st, err := p.open(unix.O_RDWR)
	if err != nil {
		return storage.Stat{}, err
	}
	defer unix.Close(fd)
	if st.Token != r.Expect || st.Size < int64(len(r.Head)) {
		return storage.Stat{}, fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	old := make([]byte, len(r.Head))
	if n, err := preadFull(fd, old, 0); err != nil || n < len(old) {
		return storage.Stat{}, p.fail("read", errors.Join(err, storage.ErrStale))
	}
	err = pwriteAll(fd, r.Head, 0)
	if err == nil && p.shared() {
		err = flush(fd)
	}
	if err == nil {
		_, err = p.confirm(st.Token)
	}
	switch {
	case err != nil:
	case len(r.Tail) > 0:
		st, err = s.Append(name, r.Tail)
	default:
		st, err = fstat(fd)
	}
	if err != nil {
		return storage.Stat{}, p.fail("overwrite", undone(err, pwriteAll(fd, old, 0)))
	}
	return st, nil
}

// Sync implements storage.Journal: it calls fsync on the file and on its directory. Both descriptors are read-only, so that
// we are not taken for a live client.
func (s *Storage) Sync(name string) error {
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	fd, _, err := p.open(unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := retry(func() error { return s.sys.fsync(fd) }); err != nil {
		return p.fail("fsync", err)
	}
	return p.syncDir()
}

// syncDir makes the names in the directory durable. Some file systems have no fsync for directories and fail with
// EINVAL or ENOTSUP, which is ignored.
func (p nameAt) syncDir() error {
	err := retry(func() error { return p.storage.sys.fsync(p.dir.fd) })
	if err != nil && err != unix.EINVAL && err != unix.ENOTSUP {
		return p.fail("fsync of the directory of", err)
	}
	return nil
}
