package dir

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// moveIn gives the file its name, if that still stands for the file that was expected, or for none where expect is
// zero, and its directory for what the path to it says. A new file never takes the place of another, even if that
// appeared this very moment.
func (t *temporary) moveIn(sys calls, expect storage.Token) error {
	if err := t.checkDir(); err != nil {
		return err
	}
	if (expect == storage.Token{}) {
		return t.moveInNew(sys)
	}
	err := t.exchange(sys)
	switch err {
	case nil:
		return t.checkExchanged(sys, expect)
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP: // a file system that cannot do that
		if err = retry(func() error { return sys.renameat2(t.dirfd, t.tempBase, t.dirfd, t.base, 0) }); err == nil {
			t.tempBase = ""
			return nil
		}
	}
	return t.fail("rename into", err)
}

func (t *temporary) moveInNew(sys calls) error {
	switch err := sys.renameNew(t.dirfd, t.tempBase, t.base); {
	case err == unix.EEXIST:
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, t.name, fs.ErrExist)
	case err != nil:
		return t.fail("rename into", err)
	}
	t.tempBase = ""
	err := t.checkDir()
	if err != nil && t.isAt(t.base) {
		t.tempBase = t.base // which discard removes
	}
	return err
}

// isAt reports whether a name in the directory is that of the file.
func (t *temporary) isAt(base string) bool {
	st, err := fstat(t.fd)
	return err == nil && nameAt{dirfd: t.dirfd, base: base, name: t.name}.checkSame(st.Token) == nil
}

// exchange gives the file the name and the one that had it the temporary's: so nothing is lost where that proves to be
// wrong.
func (t *temporary) exchange(sys calls) error {
	return retry(func() error { return sys.renameat2(t.dirfd, t.tempBase, t.dirfd, t.base, renameExchange) })
}

// checkExchanged takes an exchange back where the file that had the name is not the one that was expected, or the
// directory was replaced.
func (t *temporary) checkExchanged(sys calls, expect storage.Token) error {
	err := nameAt{dirfd: t.dirfd, base: t.tempBase, name: t.name}.checkSame(expect)
	if err == nil {
		err = t.checkDir()
	}
	if err == nil {
		_ = unix.Unlinkat(t.dirfd, t.tempBase, 0) // before the directory is synced
		t.tempBase = ""
		return nil
	}
	if undo := t.exchange(sys); undo != nil {
		t.tempBase = "" // whatever has that name now is not ours to remove
		return fmt.Errorf("%w (and not taken back: %v)", err, undo)
	}
	if !t.isAt(t.tempBase) {
		t.tempBase = ""
	}
	return err
}

// renameNew renames to a name that is free, else fails with EEXIST, on file systems without
// RENAME_NOREPLACE too.
func (c calls) renameNew(dir int, from, to string) error {
	err := retry(func() error { return c.renameat2(dir, from, dir, to, renameNoReplace) })
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	if err := unix.Linkat(dir, from, dir, to, 0); err != nil {
		return err
	}
	_ = unix.Unlinkat(dir, from, 0)
	return nil
}
