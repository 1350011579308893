package direct

import (
	"context"
	"io"
	iofs "io/fs"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// File is an open file. It is not for concurrent use.
type File struct {
	fs         *FS
	path, name string
	file       nodes.File
	handle     nodes.Handle // nil after Close
	offset     int64        // of the next Read
}

var _ = (io.ReaderAt)((*File)(nil))

// open opens the walker's current file; flag is as in os.OpenFile. The error is EISDIR at a directory, and ELOOP
// at a link, as with O_NOFOLLOW.
func (w *walker) open(flag int) (*File, error) {
	found := w.last()
	switch found.attr.Kind {
	case storage.KindDir:
		return nil, syscall.EISDIR
	case storage.KindLink:
		return nil, syscall.ELOOP
	}
	file := found.node.(nodes.File)
	h, errno := nodes.OpenFile(w.fs.ctx, file, found.name, flag)
	if errno != 0 {
		return nil, errno
	}
	return &File{
		fs:     w.fs,
		path:   w.path(),
		name:   found.name,
		file:   file,
		handle: h,
	}, nil
}

// Stat returns the attributes of the version that is open.
func (f *File) Stat() (_ iofs.FileInfo, err error) {
	defer f.fs.answer("stat", f.path, &err)
	a, err := nodes.StatVersion(f.fs.ctx, f.file, f.handle)
	return NodeInfo{name: f.name, attr: a}, errorOf(nodes.Stale(f.file, f.name, "stat", err))
}

// Read reads on from the end of the last Read.
func (f *File) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.offset)
	f.offset += int64(n)
	return n, err
}

// ReadAt reads from an offset.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	if f.fs.ctx.Err() != nil {
		return 0, context.Cause(f.fs.ctx)
	}
	n, err = f.readAt(p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// readAt is ReadAt without io.EOF: at the end it returns fewer bytes.
func (f *File) readAt(p []byte, off int64) (n int, err error) {
	defer f.fs.answer("read", f.path, &err)
	n, err = f.handle.ReadAt(f.fs.ctx, p, off)
	if err == io.EOF {
		err = nil
	}
	return n, errorOf(nodes.Fail(f.file, f.name, "read", err))
}

// Close closes the file. A second call returns ErrClosed.
func (f *File) Close() error {
	if f.handle == nil {
		return iofs.ErrClosed
	}
	f.handle.Close()
	f.handle = nil
	return nil
}
