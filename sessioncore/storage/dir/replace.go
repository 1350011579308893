package dir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

const (
	// replaceBuffer collects the lines of a rewrite into large writes.
	replaceBuffer = 64 << 10
	// sweepAge is the minimum age of a temporary file that is removed when no process here has a lock on it: one
	// of another machine, or the lock file that a process has put aside.
	sweepAge = time.Minute
	// sweepEvery is the interval between sweeps of a directory, which may be large.
	sweepEvery = time.Hour
	// aclName is the extended attribute with Linux's access control list.
	aclName = "system.posix_acl_access"
	// attributeLimit bounds an extended attribute (XATTR_SIZE_MAX).
	attributeLimit = 64 << 10
)

// Replace implements storage.Journal: it writes and syncs a temporary file, renames it over name if
// that is unchanged, and syncs the directory (docs/design.md section 4). The new file keeps the
// mode, owner and access control list of the old one, or Replace fails. A file that did not exist
// has mode 0600 and, if we are root, the owner of its directory (section 8). A new beginning is
// written in place (overwrite).
//
// ErrStale: the token is not the expected one, or the directory was replaced. If no file is
// expected and the name exists, the error wraps fs.ErrExist too. Other errors come from r.Write,
// MkdirAll or a system call. After an error nothing has changed, with one exception: if only
// the directory's fsync fails, the file is replaced, the Stat is the new file's, and a crash may
// undo the rename.
func (s *Storage) Replace(name string, r storage.Replacement) (storage.Stat, error) {
	if r.Write == nil {
		return s.overwrite(name, r)
	}
	p, err := s.openParentToWrite(name)
	if storage.IsMissing(err) && r.Expect == (storage.Token{}) {
		err = s.MkdirAll(storage.Dir(name))
		if err == nil {
			p, err = s.openParentToWrite(name)
		}
	}
	if err != nil {
		return storage.Stat{}, err
	}
	defer p.close()
	return p.replace(r)
}

// replace is Storage.Replace for a name in an open directory.
func (p nameAt) replace(r storage.Replacement) (storage.Stat, error) {
	expect := r.Expect
	err := p.expect(expect)
	if err != nil { // before the work, and once more after it
		return storage.Stat{}, err
	}
	t, err := p.temporary()
	if err != nil {
		return storage.Stat{}, err
	}
	defer t.discard() // also if write panics
	p.sweepAtTimes()
	err = t.fill(r.Write)
	if err == nil {
		err = t.takeAttributes(expect)
	}
	if err == nil && !r.Modified.IsZero() {
		err = t.temp.setTime(r.Modified)
	}
	if err == nil {
		err = t.sync()
	}
	if err == nil && r.Ready != nil {
		expect, err = t.complete(expect, r.Ready)
	}
	if err == nil {
		err = p.expect(expect)
	}
	if err == nil {
		err = t.moveIn(expect)
	}
	if err != nil {
		return storage.Stat{}, err
	}
	if r.Ready != nil {
		t.carryOver(expect.Size)
	}
	st, err := fstat(t.fd)
	if err != nil {
		return storage.Stat{}, err
	}
	return st, p.syncDir()
}

// complete appends the lines that ready adds, and makes them durable. It returns the old file's token as ready saw it: expect
// unless the file grew.
func (t *temporary) complete(expect storage.Token, ready storage.Ready) (now storage.Token, err error) {
	err = t.fill(func(more io.Writer) error {
		now, err = ready(more)
		return err
	})
	if err != nil || now == expect {
		return now, err
	}
	err = t.takeAttributes(now)
	if err != nil { // a change of them shows in the token too
		return now, err
	}
	return now, t.sync()
}

// expect fails with ErrStale unless the name has a token.
func (p nameAt) expect(token storage.Token) error {
	now, err := p.stat()
	isNew := token == (storage.Token{})
	switch {
	case errors.Is(err, fs.ErrNotExist) && isNew:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is gone", storage.ErrStale, p.name)
	case err != nil:
		return err
	case isNew:
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, p.name, fs.ErrExist)
	case now.Kind != storage.KindFile:
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, p.name)
	case now.Token != token:
		return fmt.Errorf("%w: %s", storage.ErrStale, p.name)
	}
	return nil
}

// temporary is the new file of a replacement; its nameAt is the replaced name.
type temporary struct {
	nameAt
	fd   int
	old  int    // the replaced file, open for reading; -1 if none, which Close ignores
	temp nameAt // current name of the new file, for discard; its base is "" if none
}

// temporaryTries is how often a temporary file is made, as others may take it for one of a dead
// process before it has its lock.
const temporaryTries = 10

// temporary creates a locked temporary file beside the name. Callers must discard it.
func (p nameAt) temporary() (*temporary, error) {
	t := &temporary{nameAt: p, old: -1}
	for range temporaryTries {
		t.temp = p.beside(storage.TemporaryName(p.base))
		var err error
		t.fd, err = t.temp.create()
		if err != nil {
			return nil, p.fail("create the replacement of", err)
		}
		if t.lock() {
			return t, nil
		}
		t.discard()
	}
	return nil, fmt.Errorf("%w: the replacement of %s was removed", storage.ErrStale, p.name)
}

// lock locks the file, which marks a live process for sweep. It is false if the file is removed, or
// is about to be.
func (t *temporary) lock() bool {
	err := retry(func() error {
		return unix.Flock(t.fd, unix.LOCK_EX|unix.LOCK_NB)
	})
	if err == unix.EWOULDBLOCK {
		return false
	}
	hasLocks := err == nil // some file systems have none
	return !hasLocks || t.isAt(t.temp)
}

// discard closes the file, and removes it unless it was moved in.
func (t *temporary) discard() {
	if t.temp.base != "" {
		_ = t.temp.unlink()
	}
	_ = unix.Close(t.fd)
	_ = unix.Close(t.old)
}

// fill appends the content that write writes. The buffer keeps an error that write ignores.
func (t *temporary) fill(write func(io.Writer) error) error {
	file := &descriptorWriter{sys: t.storage.sys, fd: t.fd}
	w := bufio.NewWriterSize(file, replaceBuffer)
	err := write(w)
	if err != nil {
		return err
	}
	return t.fail("write the replacement of", w.Flush())
}

// sync makes the content of the file durable.
func (t *temporary) sync() error {
	err := retry(func() error {
		return t.storage.sys.fsync(t.fd)
	})
	return t.fail("fsync the replacement of", err)
}

// descriptorWriter writes to a descriptor.
type descriptorWriter struct {
	sys calls
	fd  int
}

// Write implements io.Writer.
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

// takeAttributes copies the owner, access control list and mode of the old file, or sets the ones of a
// new file. The owner comes first and the mode last, so that nobody gets to read it for a moment. It keeps the old file open.
func (t *temporary) takeAttributes(expect storage.Token) error {
	if expect == (storage.Token{}) {
		err := t.giveToOwner(t.fd)
		if err != nil {
			return t.fail("chown the replacement of", err)
		}
		return t.setMode(storage.FileMode)
	}
	old, st, err := t.open(unix.O_RDONLY)
	if err != nil {
		return err
	}
	_ = unix.Close(t.old)
	t.old = old
	if !st.SameObject(expect) { // it may have grown, see complete
		return fmt.Errorf("%w: %s", storage.ErrStale, t.name)
	}
	err = chown(t.fd, st.UID, st.GID)
	if err != nil {
		return t.fail("keep the owner of", err)
	}
	err = keepACL(old, t.fd)
	if err != nil {
		return t.fail("keep the access control list of", err)
	}
	return t.setMode(st.Mode)
}

// setMode sets the mode regardless of the umask.
func (t *temporary) setMode(mode uint32) error {
	err := retry(func() error {
		return unix.Fchmod(t.fd, mode)
	})
	return t.fail("chmod the replacement of", err)
}

// keepACL copies the access control list, or removes it if from has none: the directory's default
// list may have given the new file one, and an old file's group bits may grant more without its
// list.
func keepACL(from, to int) error {
	list := make([]byte, attributeLimit)
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
