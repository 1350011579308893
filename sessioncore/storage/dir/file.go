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
	fd   int

	mu     sync.Mutex // guards the fields below
	users  int        // of the descriptor
	closed bool
}

// do calls a function with the descriptor, again after EINTR. The error has the name, but io.EOF is returned as it is; after
// Close it wraps fs.ErrClosed.
func (f *file) do(op string, call func(fd int) error) error {
	err := fs.ErrClosed
	if f.enter() {
		err = retry(func() error { return call(f.fd) })
		f.leave()
	}
	if err != nil && err != io.EOF {
		err = &fs.PathError{Op: op, Path: f.name, Err: err}
	}
	return err
}

// enter adds a user of the descriptor, unless the file is closed.
func (f *file) enter() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	f.users++
	return true
}

// leave removes a user. The last one of a closed file closes the descriptor. Nobody waits for that, as
// a read may take as long as a network.
func (f *file) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users--
	if f.closed && f.users == 0 {
		_ = unix.Close(f.fd)
	}
}

// ReadAt implements storage.Object.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		err = f.do("read", func(fd int) error {
			read, err := unix.Pread(fd, p[n:], off+int64(n))
			if err != nil {
				return err
			}
			if read == 0 {
				return io.EOF
			}
			n += read
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

// Fd returns the descriptor, which is valid until Close; after that it returns no descriptor.
func (f *file) Fd() uintptr {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return ^uintptr(0)
	}
	return uintptr(f.fd)
}

// Close implements storage.Object.
func (f *file) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return &fs.PathError{Op: "close", Path: f.name, Err: fs.ErrClosed}
	}
	f.closed = true
	if f.users > 0 {
		return nil
	}
	return unix.Close(f.fd)
}
