package dir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// calls are the system calls that tests let fail.
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

// writeOnce is one write(2), repeated only if a signal interrupted it before the first byte. Go
// handles SIGXFSZ, so that a file size limit shows as a short write or EFBIG.
func (c calls) writeOnce(fd int, p []byte) (n int, err error) {
	err = retry(func() error {
		n, err = c.write(fd, p)
		return err
	})
	return max(n, 0), err
}

// beside returns another name in the same directory, which is closed with p.
func (p nameAt) beside(base string) nameAt {
	p.base = base
	return p
}

// readlink returns the target of a link, as stored.
func (p nameAt) readlink() (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(p.dir, p.base, buf)
	if err != nil {
		return "", p.fail("readlink", err)
	}
	return string(buf[:n]), nil
}

// open opens a regular file. O_NONBLOCK also prevents a hang on a FIFO.
func (p nameAt) open(flags int) (int, storage.Stat, error) {
	fd, err := p.storage.openat(p.dir, p.base, flags|unix.O_NONBLOCK|unix.O_NOCTTY)
	var st storage.Stat
	switch {
	case err == unix.EISDIR || err == unix.ENXIO: // a directory; a FIFO or socket without a peer
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

// create creates the file with mode 0600 for appending, or fails with EEXIST.
func (p nameAt) create() (fd int, err error) {
	const flags = unix.O_RDWR | unix.O_APPEND | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	err = retry(func() error {
		fd, err = unix.Openat(p.dir, p.base, flags, storage.FileMode)
		return err
	})
	return fd, err
}

// unlink removes the name.
func (p nameAt) unlink() error {
	return retry(func() error {
		return unix.Unlinkat(p.dir, p.base, 0)
	})
}

// renameNew renames a file or directory and fails with EEXIST if the new name exists, on any
// kernel.
func (p nameAt) renameNew(sys calls, to nameAt) error {
	err := retry(func() error {
		return sys.renameat2(p.dir, p.base, to.dir, to.base, renameNoReplace)
	})
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	st, err := p.stat()
	if err == nil && st.Kind == storage.KindDir { // it replaces an empty directory at most
		return retry(func() error {
			return unix.Renameat(p.dir, p.base, to.dir, to.base)
		})
	}
	err = unix.Linkat(p.dir, p.base, to.dir, to.base, 0)
	if err != nil {
		return err
	}
	_ = p.unlink()
	return nil
}

// exchange swaps two names. The error is ENOTSUP if the file system cannot do that.
func (p nameAt) exchange(with nameAt) error {
	err := retry(func() error {
		return p.storage.sys.renameat2(p.dir, p.base, with.dir, with.base, renameExchange)
	})
	if err == unix.EINVAL || err == unix.ENOSYS {
		return unix.ENOTSUP
	}
	return err
}

// Append implements storage.Journal with one write(2) (docs/design.md section 4). To begin a line,
// callers may have to put a newline before data (storage.EndsInNewline). In a shared directory the
// data is read back.
//
// A failed or short write is undone; the error wraps its errno (ENOSPC, EDQUOT, EFBIG, EIO, …) or
// io.ErrShortWrite. ErrStale: a program without the lock replaced the file or the directory, and
// the data is not in it; or another machine wrote to the same place, and the first lines of data
// may be in the file. ErrLocked: another process's lease forbids writing. Else the errors of Open.
func (s *Storage) Append(name string, data []byte) (storage.Stat, error) {
	p, err := s.openParentToWrite(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer p.close()
	// takeBack must read to compare. The descriptor is closed at once, as an open one makes us look
	// like a live client (Writers).
	fd, before, err := p.open(unix.O_RDWR | unix.O_APPEND)
	if err != nil {
		return storage.Stat{}, err
	}
	defer unix.Close(fd)

	var after storage.Stat
	err = s.sys.appendOnce(fd, data)
	if err == nil && p.shared() {
		err = p.verifyAppend(fd, before, data)
	}
	if err == nil {
		after, err = p.confirm(before.Token)
	}
	if err != nil {
		return storage.Stat{}, p.fail("append", s.sys.takeBack(fd, before.Size, data, err))
	}
	return after, nil
}

// appendOnce writes data in one call. After a short write it writes the rest to learn why.
func (c calls) appendOnce(fd int, data []byte) error {
	n, err := c.writeOnce(fd, data)
	if err == nil && n < len(data) {
		_, err = c.writeOnce(fd, data[n:])
		if err == nil {
			err = io.ErrShortWrite
		}
	}
	return err
}

// statSame is stat, but fails with ErrStale unless the name still refers to was: a client without
// the lock may have renamed a new file over it.
func (p nameAt) statSame(was storage.Token) (storage.Stat, error) {
	now, err := p.stat()
	if errors.Is(err, fs.ErrNotExist) || err == nil && !now.SameObject(was) {
		err = storage.ErrStale
	}
	return now, err
}

// checkSame fails with ErrStale unless the name still refers to was.
func (p nameAt) checkSame(was storage.Token) error {
	_, err := p.statSame(was)
	return err
}

// takeBack truncates the file to size after an append of data failed with the error why, which it
// returns. If the bytes beyond size are not the beginning of data, another program appended too; then
// our part stays as a torn line, which readers skip, and the error says so.
func (c calls) takeBack(fd int, size int64, data []byte, why error) error {
	now, err := fstat(fd)
	if err != nil || now.Size == size {
		return undone(why, err)
	}
	isOurs, err := endIs(fd, size, now.Size, data)
	if err == nil && !isOurs {
		err = errors.New("another program wrote to the file's end")
	}
	if err == nil {
		err = retry(func() error { return c.ftruncate(fd, size) })
	}
	return undone(why, err)
}

// undone adds the error of undoing to the error that made it necessary. The latter's errno counts.
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
	tail := make([]byte, to-from)
	n, err := preadFull(fd, tail, from)
	if err != nil || n < len(tail) {
		return false, err
	}
	return bytes.HasPrefix(data, tail), nil
}

// preadFull reads from offset off until p is full or the file ends, which is no error: then n is less than len(p).
func preadFull(fd int, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		var read int
		err := retry(func() (err error) {
			read, err = unix.Pread(fd, p[n:], off+int64(n))
			return err
		})
		if err != nil || read == 0 {
			return n, err
		}
		n += read
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
		p = p[n:]
		off += int64(n)
	}
	return nil
}

// overwrite is Replace for a new beginning: one pwrite(2), and one write(2) for the tail, so that
// open handles see it. A title slot lies within one page, so that readers see it all or not at all.
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
	n, err := preadFull(fd, old, 0)
	if err != nil || n < len(old) {
		return storage.Stat{}, p.fail("read", errors.Join(err, storage.ErrStale))
	}
	err = pwriteAll(fd, r.Head, 0)
	if err == nil && p.shared() {
		err = flush(fd) // before Append, which opens the file anew
	}
	if err == nil {
		_, err = p.confirm(st.Token)
	}
	if err == nil {
		st, err = s.Append(name, r.Tail)
	}
	if err != nil {
		return storage.Stat{}, p.fail("overwrite", undone(err, pwriteAll(fd, old, 0)))
	}
	return st, nil
}

// Sync implements storage.Journal with fsync on the file and its directory. Both descriptors are
// read-only, so that we do not look like a live client.
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
	err = retry(func() error {
		return s.sys.fsync(fd)
	})
	if err != nil {
		return p.fail("fsync", err)
	}
	return p.syncDir()
}

// syncDir makes the names in the directory durable, except on file systems without fsync for
// directories (EINVAL, ENOTSUP).
func (p nameAt) syncDir() error {
	dir, err := p.reopenDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	err = retry(func() error {
		return p.storage.sys.fsync(int(dir.Fd()))
	})
	if err == unix.EINVAL || err == unix.ENOTSUP {
		return nil
	}
	return p.fail("fsync of the directory of", err)
}
