package dir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

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

const (
	// leasePoll is how often an open that fails because of another process's lease is retried: short compared with
	// the microseconds for which Writers holds its lease, long compared with the call.
	leasePoll = time.Millisecond
	// leaseLimit bounds that wait. It equals the limit for locks (storage.LockLimit): to the user both mean "busy".
	// Without it a foreign lease would hold us for the kernel's 45 seconds.
	leaseLimit = storage.LockLimit
)

// nameAt is a name in an open directory: a dirfd and a name without slashes, as openat(2) takes them. Calls on it
// stay in that directory even if the directory is moved, and follow no link.
type nameAt struct {
	dirfd   int          // descriptor of the directory
	base    string       // the name in it
	name    string       // path below the storage's root, for messages
	storage *Storage     // the storage
	parent  string       // path of the directory below the storage's root
	held    *heldDir     // owner of dirfd; nil if the nameAt owns it
	was     storage.Stat // of held, when it was opened
}

// openParent opens the directory that contains name. Callers must call close.
func (s *Storage) openParent(name string) (nameAt, error) {
	if err := storage.CheckName(name); err != nil {
		return nameAt{}, err
	}
	dir, base := path.Split(name)
	p := nameAt{base: base, name: name, storage: s, parent: strings.TrimSuffix(dir, "/")}
	var err error
	switch {
	case p.parent == "":
		p.held, p.was, err = s.root.get()
	case canHold(p.parent):
		p.held, p.was, err = s.hold(p.parent)
	default:
		p.dirfd, err = s.openat(p.parent, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	if err != nil {
		return nameAt{}, err
	}
	if p.held != nil {
		p.dirfd = p.held.fd
	}
	return p, nil
}

// dirStat returns the Stat of the directory.
func (p nameAt) dirStat() (storage.Stat, error) {
	if p.held != nil {
		return p.was, nil
	}
	return fstat(p.dirfd)
}

func (p nameAt) close() {
	if p.held != nil {
		p.held.release()
		return
	}
	_ = unix.Close(p.dirfd)
}

// fail wraps an error of a call on the name.
func (p nameAt) fail(op string, err error) error {
	return &fs.PathError{Op: op, Path: p.name, Err: err}
}

// failed is fail for a call that may have succeeded.
func (p nameAt) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return p.fail(op, err)
}

// stat returns what the name currently refers to, without following a link.
func (p nameAt) stat() (storage.Stat, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstatat(p.dirfd, p.base, &st, unix.AT_SYMLINK_NOFOLLOW) })
	if err != nil {
		return storage.Stat{}, p.fail("stat", err)
	}
	return statOf(&st), nil
}

// open opens the name if it is a regular file. O_NONBLOCK prevents a hang on a FIFO, and makes a lease on the file
// fail with EAGAIN instead of blocking in the kernel.
func (p nameAt) open(flags int) (int, storage.Stat, error) {
	flags |= unix.O_NONBLOCK | unix.O_NOFOLLOW | unix.O_NOCTTY | unix.O_CLOEXEC
	for start := time.Now(); ; time.Sleep(leasePoll) {
		var fd int
		err := retry(func() (err error) {
			fd, err = unix.Openat(p.dirfd, p.base, flags, 0)
			return err
		})
		switch err {
		case nil:
			return p.regular(fd)
		case unix.EAGAIN:
			if time.Since(start) > leaseLimit {
				return -1, storage.Stat{}, fmt.Errorf("%w: %s: another process has a lease on it", storage.ErrLocked, p.name)
			}
		case unix.EISDIR, unix.ENXIO: // a directory; a FIFO or socket that nobody has open at the other end
			return -1, storage.Stat{}, fmt.Errorf("%w: %s", storage.ErrNotRegular, p.name)
		default:
			return -1, storage.Stat{}, p.fail("open", notFoundBehindLink(err))
		}
	}
}

// regular returns fd and its Stat if it is a regular file, and otherwise closes it.
func (p nameAt) regular(fd int) (int, storage.Stat, error) {
	st, err := fstat(fd)
	if err == nil && st.Kind != storage.KindFile {
		err = fmt.Errorf("%w: %s", storage.ErrNotRegular, p.name)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, storage.Stat{}, err
	}
	return fd, st, nil
}

func fstat(fd int) (storage.Stat, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return storage.Stat{}, &fs.PathError{Op: "fstat", Err: err}
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
	return s.appendWith(kernel, name, data)
}

func (s *Storage) appendWith(sys calls, name string, data []byte) (storage.Stat, error) {
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
	err = sys.appendOnce(fd, data)
	if err == nil && p.shared() {
		err = p.arrived(fd, before, data)
	}
	if err == nil {
		after, err = p.confirm(before.Token)
	}
	if err != nil {
		return storage.Stat{}, p.fail("append", sys.takeBack(fd, before.Size, data, err))
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
	if err != nil {
		return fmt.Errorf("%w (and not taken back: %v)", why, err)
	}
	if now.Size == size {
		return why
	}
	ours, err := endIs(fd, size, now.Size, data)
	if err == nil && !ours {
		err = errors.New("another program wrote to the file's end")
	}
	if err == nil {
		err = retry(func() error { return c.ftruncate(fd, size) })
	}
	if err != nil { // %v: the errno of the append is the one that counts
		return fmt.Errorf("%w (and not taken back: %v)", why, err)
	}
	return why
}

// endIs reports whether the file's bytes in [from, to) are a prefix of data.
func endIs(fd int, from, to int64, data []byte) (bool, error) {
	if to < from || to-from > int64(len(data)) {
		return false, nil
	}
	data = data[:to-from]
	buf := make([]byte, min(len(data), 64<<10))
	for len(data) > 0 {
		var n int
		err := retry(func() (err error) {
			n, err = unix.Pread(fd, buf[:min(len(buf), len(data))], from)
			return err
		})
		if err != nil {
			return false, err
		}
		if n == 0 || !bytes.Equal(buf[:n], data[:n]) {
			return false, nil
		}
		data, from = data[n:], from+int64(n)
	}
	return true, nil
}

// overwrite is Replace for a file that gets another beginning: one pwrite(2), and for what is added one write(2). So who
// has the file open goes on with it. A title slot lies within one page, so that readers see the old bytes or the new ones.
func (s *Storage) overwrite(sys calls, name string, r storage.Replacement) (storage.Stat, error) {
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
		st, err = s.appendWith(sys, name, r.Tail)
	default:
		st, err = fstat(fd)
	}
	if err != nil {
		if undo := pwriteAll(fd, old, 0); undo != nil {
			err = fmt.Errorf("%w (and its beginning was not put back: %v)", err, undo)
		}
		return storage.Stat{}, p.fail("overwrite", err)
	}
	return st, nil
}

// Sync implements storage.Journal: it calls fsync on the file and on its directory. Both descriptors are read-only, so that
// we are not taken for a live client.
func (s *Storage) Sync(name string) error { return s.syncWith(kernel, name) }

func (s *Storage) syncWith(sys calls, name string) error {
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
	if err := retry(func() error { return sys.fsync(fd) }); err != nil {
		return p.fail("fsync", err)
	}
	return p.syncDir(sys)
}

// syncDir makes the names in the directory durable. Some file systems have no fsync for directories and fail with
// EINVAL or ENOTSUP, which is ignored.
func (p nameAt) syncDir(sys calls) error {
	err := retry(func() error { return sys.fsync(p.dirfd) })
	if err != nil && err != unix.EINVAL && err != unix.ENOTSUP {
		return p.fail("fsync of the directory of", err)
	}
	return nil
}
