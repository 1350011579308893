package dir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// replaceBuffer gathers the lines of a rewrite into calls of a size that disks like.
	replaceBuffer = 64 << 10
	// aclName is where Linux keeps an access control list.
	aclName = "system.posix_acl_access"
	// aclLimit is the most that an extended attribute can hold (XATTR_SIZE_MAX).
	aclLimit = 64 << 10
)

// Replace implements Storage: a temporary file in the same directory, fsynced, renamed over the name
// when that is still what it was, and the directory fsynced (docs/design.md section 4). Mode, owner and
// access control list of the replaced file are kept, and it is refused where they cannot be; a new
// file has mode 0600 and, when we are root, the owner of its directory (section 8).
//
// ErrStale: the name's token is not expect, or its directory is replaced; where expect is the zero Token and the
// name exists, the error is fs.ErrExist too. Else what write returned or the system says. After any error everything
// is as it was, but for one: when the directory's fsync fails the file is already replaced, the Stat
// returned is the new one's, and only its survival of a crash is in doubt.
func (s *Storage) Replace(name string, expect storage.Token, write func(io.Writer) error) (storage.Stat, error) {
	return s.replaceWith(kernel, name, expect, write)
}

func (s *Storage) replaceWith(sys calls, name string, expect storage.Token, write func(io.Writer) error) (storage.Stat, error) {
	return s.replaceIf(sys, name, expect, write, nil)
}

// replaceIf is Replace, or with ready ReplaceIf.
func (s *Storage) replaceIf(sys calls, name string, expect storage.Token, write func(io.Writer) error, ready func() error) (storage.Stat, error) {
	p, err := s.openParentToWrite(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer p.close()
	if err := p.expect(expect); err != nil { // before the work, and again after it
		return storage.Stat{}, err
	}
	t, err := p.temporary()
	if err != nil {
		return storage.Stat{}, err
	}
	defer t.discard() // also when write panics
	if err := t.fill(sys, write); err != nil {
		return storage.Stat{}, err
	}
	if err := t.takeAttributes(expect); err != nil {
		return storage.Stat{}, err
	}
	if err := retry(func() error { return sys.fsync(t.fd) }); err != nil {
		return storage.Stat{}, p.fail("fsync the replacement of", err)
	}
	if ready != nil {
		if err := ready(); err != nil {
			return storage.Stat{}, err
		}
	}
	if err := p.expect(expect); err != nil {
		return storage.Stat{}, err
	}
	if err := t.moveIn(sys, expect); err != nil {
		return storage.Stat{}, err
	}
	if ready != nil {
		t.carryOver(sys, expect.Size)
	}
	st, err := fstat(t.fd)
	if err != nil {
		return storage.Stat{}, err
	}
	return st, p.syncDir(sys)
}

// expect fails with ErrStale when the name's token is another.
func (p nameAt) expect(token storage.Token) error {
	now, err := p.stat()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if token == (storage.Token{}) {
			return nil
		}
		return fmt.Errorf("%w: %s is gone", storage.ErrStale, p.name)
	case err != nil:
		return err
	case token == (storage.Token{}):
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, p.name, fs.ErrExist)
	case now.Kind != storage.KindFile:
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, p.name)
	case now.Token != token:
		return fmt.Errorf("%w: %s", storage.ErrStale, p.name)
	}
	return nil
}

// temporary is the file that is to take a place.
type temporary struct {
	nameAt
	fd       int
	old      int          // the file that it replaces, open for reading; -1: none
	tempBase string       // its own name; "" once that is gone
	owner    storage.Stat // of the directory
}

func (p nameAt) temporary() (*temporary, error) {
	dir, err := fstat(p.dirfd)
	if err != nil {
		return nil, err
	}
	t := &temporary{nameAt: p, tempBase: storage.TemporaryName(p.base), owner: dir, old: -1}
	t.fd, err = p.create(t.tempBase)
	if err != nil {
		return nil, p.fail("create the replacement of", err)
	}
	return t, nil
}

// create makes a file of mode 0600, open for reading and writing, that was not there before.
func (p nameAt) create(base string) (fd int, err error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	err = retry(func() error {
		fd, err = unix.Openat(p.dirfd, base, flags, storage.FileMode)
		return err
	})
	return fd, err
}

// discard closes the file, and removes it unless it was moved in.
func (t *temporary) discard() {
	if t.tempBase != "" {
		_ = unix.Unlinkat(t.dirfd, t.tempBase, 0)
	}
	_ = unix.Close(t.fd)
	if t.old >= 0 {
		_ = unix.Close(t.old)
	}
}

// fill writes the content. The buffer remembers an error even if write does not.
func (t *temporary) fill(sys calls, write func(io.Writer) error) error {
	w := bufio.NewWriterSize(&descriptorWriter{sys: sys, fd: t.fd}, replaceBuffer)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return t.fail("write the replacement of", err)
	}
	return nil
}

type descriptorWriter struct {
	sys calls
	fd  int
}

func (w *descriptorWriter) Write(p []byte) (done int, err error) {
	for done < len(p) {
		n, err := w.sys.writeOnce(w.fd, p[done:])
		if err != nil {
			return done, err
		}
		if n == 0 {
			return done, io.ErrShortWrite
		}
		done += n
	}
	return done, nil
}

// takeAttributes gives the file the access rules of the one it replaces, or those of a new one. The
// owner first and the mode last, so that at no moment more people can read it than in the end.
func (t *temporary) takeAttributes(expect storage.Token) error {
	if expect == (storage.Token{}) {
		if err := giveToOwner(t.fd, t.owner); err != nil {
			return t.fail("chown the replacement of", err)
		}
		return t.setMode(storage.FileMode)
	}
	old, was, err := t.open(unix.O_RDONLY)
	if err != nil {
		return err
	}
	t.old = old
	if was.Token != expect {
		return fmt.Errorf("%w: %s", storage.ErrStale, t.name)
	}
	if err := chown(t.fd, was.UID, was.GID); err != nil {
		return t.fail("keep the owner of", err)
	}
	if err := keepACL(old, t.fd); err != nil {
		return t.fail("keep the access control list of", err)
	}
	return t.setMode(was.Mode)
}

// setMode makes the mode what it says, whatever the umask.
func (t *temporary) setMode(mode uint32) error {
	if err := retry(func() error { return unix.Fchmod(t.fd, mode) }); err != nil {
		return t.fail("chmod the replacement of", err)
	}
	return nil
}

// keepACL makes the access control list the same, none included: a directory may have given a new file one of its
// own, and without its list a file's group bits would mean more than they did.
func keepACL(from, to int) error {
	list := make([]byte, aclLimit)
	n, err := unix.Fgetxattr(from, aclName, list)
	switch err {
	case nil:
		return unix.Fsetxattr(to, aclName, list[:n], 0)
	case errNoAttribute:
		err = unix.Fremovexattr(to, aclName)
	}
	if err == errNoAttribute || err == unix.ENOTSUP || err == unix.ENOSYS {
		return nil
	}
	return err
}
