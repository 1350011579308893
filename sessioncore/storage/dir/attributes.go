package dir

import (
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// SetAttributes implements Storage.
func (s *Storage) SetAttributes(name string, a storage.Attributes) error {
	p, err := s.openParentToWrite(name)
	if err != nil {
		return err
	}
	defer p.close()
	// What has the name is opened once, so that all of it is about one file. A link or a device is refused.
	fd, err := p.openDir()
	if err != nil {
		if fd, _, err = p.open(unix.O_RDONLY); err != nil {
			return err
		}
	}
	defer unix.Close(fd)
	return p.setAttributes(fd, a)
}

// setAttributes changes attributes of what is open. The owner comes first, as a change of it may clear bits of the mode,
// and the times last.
func (p nameAt) setAttributes(fd int, a storage.Attributes) error {
	if a.UID != nil || a.GID != nil {
		now, err := fstat(fd)
		if err != nil {
			return err
		}
		if a.UID != nil {
			now.UID = *a.UID
		}
		if a.GID != nil {
			now.GID = *a.GID
		}
		if err := chown(fd, now.UID, now.GID); err != nil {
			return p.fail("chown", err)
		}
	}
	if a.Mode != nil {
		if err := retry(func() error { return unix.Fchmod(fd, *a.Mode&0o777) }); err != nil {
			return p.fail("chmod", err)
		}
	}
	if a.Accessed != nil || a.Modified != nil {
		if err := retry(func() error { return setTimes(fd, a.Accessed, a.Modified) }); err != nil {
			return p.fail("utimens", err)
		}
	}
	return nil
}
