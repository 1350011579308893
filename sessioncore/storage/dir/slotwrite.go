package dir

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// Overwrite implements Storage with one pwrite(2). A title slot lies within one page, so that readers see the old
// bytes or the new ones.
func (s *Storage) Overwrite(name string, expect storage.Token, data []byte) (storage.Stat, error) {
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
	if st.Token != expect || st.Size < int64(len(data)) {
		return storage.Stat{}, fmt.Errorf("%w: %s", storage.ErrStale, name)
	}
	old := make([]byte, len(data))
	if n, err := unix.Pread(fd, old, 0); err != nil || n < len(old) {
		return storage.Stat{}, p.fail("read", errors.Join(err, storage.ErrStale))
	}
	err = pwriteOnce(fd, data)
	if err == nil && p.shared() {
		err = flush(fd)
	}
	if err == nil {
		_, err = p.confirm(st.Token)
	}
	if err != nil {
		if undo := pwriteOnce(fd, old); undo != nil {
			err = fmt.Errorf("%w (and not taken back: %v)", err, undo)
		}
		return storage.Stat{}, p.fail("overwrite", err)
	}
	return fstat(fd)
}

func pwriteOnce(fd int, data []byte) error {
	var n int
	err := retry(func() (err error) {
		n, err = unix.Pwrite(fd, data, 0)
		return err
	})
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}
