package dir

import (
	"fmt"
	"path"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// HardLink implements Storage.
func (s *Storage) HardLink(name, second string) error {
	if err := storage.CheckName(second); err != nil {
		return err
	}
	if path.Dir(second) != path.Dir(name) {
		return fmt.Errorf("%w: %s is not beside %s", storage.ErrBadName, second, name)
	}
	p, err := s.openParent(name)
	if err != nil {
		return err
	}
	defer p.close()
	if err := retry(func() error { return unix.Linkat(p.dirfd, p.base, p.dirfd, path.Base(second), 0) }); err != nil {
		return p.fail("link", err)
	}
	return nil
}
