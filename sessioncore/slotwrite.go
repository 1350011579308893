package sessioncore

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// SlotWriter is a storage that can overwrite the beginning of a file in place, as clients do with the
// title slot. A storage that wraps another one returns errors.ErrUnsupported where that cannot.
type SlotWriter interface {
	// Overwrite puts data in the place of the file's first bytes, if its token is still expect (else
	// ErrStale) and it has as many. The file is as it was after an error. The caller holds Lock(name).
	Overwrite(name string, expect Token, data []byte) (Stat, error)
}

var (
	_ SlotWriter = (*FileStorage)(nil)
	_ SlotWriter = (*MemoryStorage)(nil)
	_ SlotWriter = (*PendingStorage)(nil)
)

// Overwrite implements SlotWriter: one pwrite(2). A slot lies within one page, so that readers see the
// old bytes or the new ones.
func (s *FileStorage) Overwrite(name string, expect Token, data []byte) (Stat, error) {
	p, err := s.writePlace(name)
	if err != nil {
		return Stat{}, err
	}
	defer p.close()
	fd, st, err := p.open(unix.O_RDWR)
	if err != nil {
		return Stat{}, err
	}
	defer unix.Close(fd)
	if st.Token != expect || st.Size < int64(len(data)) {
		return Stat{}, fmt.Errorf("%w: %s", ErrStale, name)
	}
	old := make([]byte, len(data))
	if n, err := unix.Pread(fd, old, 0); err != nil || n < len(old) {
		return Stat{}, p.fail("read", errors.Join(err, ErrStale))
	}
	err = pwriteOnce(fd, data)
	if err == nil {
		_, err = p.confirm(st.Token)
	}
	if err != nil {
		if undo := pwriteOnce(fd, old); undo != nil {
			err = fmt.Errorf("%w (and not taken back: %v)", err, undo)
		}
		return Stat{}, p.fail("overwrite", err)
	}
	return fstat(fd)
}

func pwriteOnce(fd int, data []byte) error {
	var n int
	err := uninterrupted(func() (err error) {
		n, err = unix.Pwrite(fd, data, 0)
		return err
	})
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	return err
}

// Overwrite implements SlotWriter. Readers may keep slices of the old content, so it is copied.
func (m *MemoryStorage) Overwrite(name string, expect Token, data []byte) (Stat, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := m.file("overwrite", name)
	if err != nil {
		return Stat{}, err
	}
	if n.stat().Token != expect || len(n.data) < len(data) {
		return Stat{}, fmt.Errorf("%w: %s", ErrStale, name)
	}
	n.data = append(bytes.Clone(data), n.data[len(data):]...)
	m.touch(n)
	return n.stat(), nil
}
