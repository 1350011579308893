package dir

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// moveIn gives the file its name, if the name still refers to the file expect (or to none if expect is zero) and the
// path still leads to the directory. A new file never replaces another, even one created at this moment.
func (t *temporary) moveIn(sys calls, expect storage.Token) error {
	if err := t.checkDir(); err != nil {
		return err
	}
	if (expect == storage.Token{}) {
		return t.moveInNew(sys)
	}
	if err := t.setAside(); err != nil {
		return err
	}
	err := t.exchange(sys)
	switch err {
	case nil:
		return t.checkExchanged(sys, expect)
	case unix.EINVAL, unix.ENOSYS, unix.ENOTSUP: // a file system without RENAME_EXCHANGE
		if err = retry(func() error { return sys.renameat2(t.dirfd, t.tempBase, t.dirfd, t.base, 0) }); err == nil {
			t.tempBase = ""
			return nil
		}
	}
	return t.fail("rename into", err)
}

func (t *temporary) moveInNew(sys calls) error {
	switch err := sys.renameNew(t.dirfd, t.tempBase, t.dirfd, t.base); {
	case err == unix.EEXIST:
		return fmt.Errorf("%w: %s: %w", storage.ErrStale, t.name, fs.ErrExist)
	case err != nil:
		return t.fail("rename into", err)
	}
	t.tempBase = ""
	err := t.checkDir()
	if err != nil && t.isAt(t.base) {
		t.tempBase = t.base // so that discard removes it
	}
	return err
}

// isAt reports whether base in the directory refers to this file.
func (t *temporary) isAt(base string) bool {
	st, err := fstat(t.fd)
	return err == nil && nameAt{dirfd: t.dirfd, base: base, name: t.name}.checkSame(st.Token) == nil
}

// exchange swaps the names of the temporary file and the old one, so that nothing is lost if the old one is not the
// expected one.
func (t *temporary) exchange(sys calls) error {
	return retry(func() error { return sys.renameat2(t.dirfd, t.tempBase, t.dirfd, t.base, renameExchange) })
}

// checkExchanged undoes an exchange if the old file is not the expected one or the directory was replaced.
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
		t.tempBase = "" // what has that name now is not ours to remove
		return fmt.Errorf("%w (and not taken back: %v)", err, undo)
	}
	if !t.isAt(t.tempBase) {
		t.tempBase = ""
	}
	return err
}

// renameNew renames a file and fails with EEXIST if to exists, also on file systems without RENAME_NOREPLACE.
func (c calls) renameNew(fromDir int, from string, toDir int, to string) error {
	err := retry(func() error { return c.renameat2(fromDir, from, toDir, to, renameNoReplace) })
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	if err := unix.Linkat(fromDir, from, toDir, to, 0); err != nil {
		return err
	}
	_ = unix.Unlinkat(fromDir, from, 0)
	return nil
}
