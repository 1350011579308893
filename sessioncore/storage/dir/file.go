package dir

import (
	"io"
	"io/fs"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// file is an open regular file. It is no os.File, which asks the kernel of each file whether it can
// wait for it: searches and lists open thousands.
type file struct {
	name string

	mu     sync.RWMutex // guards the fields below; held while the descriptor is used
	fd     int
	closed bool
}

// do calls a function with the descriptor. It returns fs.ErrClosed after Close.
func (f *file) do(op string, call func(fd int) error) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	err := fs.ErrClosed
	if !f.closed {
		err = retry(func() error { return call(f.fd) })
	}
	if err != nil && err != io.EOF {
		err = &fs.PathError{Op: op, Path: f.name, Err: err}
	}
	return err
}

// ReadAt implements storage.Object.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		err = f.do("read", func(fd int) error {
			m, err := unix.Pread(fd, p[n:], off+int64(n))
			switch {
			case err != nil:
				return err
			case m == 0:
				return io.EOF
			}
			n += m
			return nil
		})
	}
	return n, err
}

// Stat implements storage.Object.
func (f *file) Stat() (st storage.Stat, err error) {
	err = f.do("stat", func(fd int) error {
		st, err = fstat(fd)
		return err
	})
	return st, err
}

// Fd returns the descriptor, which is valid until Close.
func (f *file) Fd() uintptr {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.closed {
		return ^uintptr(0)
	}
	return uintptr(f.fd)
}

// Close implements storage.Object. It waits for reads.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	return unix.Close(f.fd)
}
