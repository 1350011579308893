package dir

import (
	"fmt"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// RemoveIf implements Storage.
func (s *Storage) RemoveIf(name string, expect storage.Token) error {
	p, err := s.openParentToWrite(name)
	if err != nil {
		return err
	}
	defer p.close()
	now, err := p.stat()
	if err != nil {
		return err
	}
	flags, same := 0, now.Token == expect
	switch now.Kind {
	case storage.KindDir:
		flags, same = unix.AT_REMOVEDIR, now.SameObject(expect)
	case storage.KindFile:
	default:
		return fmt.Errorf("%w: %s", storage.ErrNotRegular, name)
	}
	if !same {
		return fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	if err := retry(func() error { return unix.Unlinkat(p.dirfd, p.base, flags) }); err != nil {
		return p.fail("remove", err)
	}
	return p.syncDir(kernel)
}
