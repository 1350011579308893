package direct

import (
	"context"
	"io"
	iofs "io/fs"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// File is an open file, with separate offsets for reading and writing. It is not for concurrent
// use.
type File struct {
	namedNode
	fs      *FS
	path    string
	handle  nodes.Handle
	read    int64
	written int64
	err     error // of Close
	closed  bool
}

var (
	_ = (iofs.File)((*File)(nil))
	_ = (io.ReadSeeker)((*File)(nil))
	_ = (io.Writer)((*File)(nil))
)

// open opens the walker's current file.
func (w *walker) open(flag int) (*File, error) {
	switch w.last().attr.Kind {
	case storage.KindDir:
		return nil, syscall.EISDIR
	case storage.KindLink:
		return nil, syscall.ELOOP
	}
	h, errno := nodes.OpenFile(w.fs.ctx, w.last().node.(nodes.File), w.last().name, flag)
	if errno != 0 {
		return nil, errno
	}
	return &File{namedNode: *w.last(), fs: w.fs, path: w.path(), handle: h}, nil
}

// Stat returns the file's current attributes.
func (f *File) Stat() (_ iofs.FileInfo, err error) {
	defer f.fs.answer("stat", f.path, &err)
	stat := f.node.Stat
	if version, ok := f.handle.(nodes.VersionHandle); ok {
		stat = version.Stat
	}
	err = f.stat(f.fs.ctx, stat)
	return f.info(), err
}

// Read reads from the current offset.
func (f *File) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if f.fs.ctx.Err() != nil {
		return 0, context.Cause(f.fs.ctx)
	}
	defer func() {
		if err == nil && n == 0 {
			err = io.EOF
		}
	}()
	defer f.fs.answer("read", f.path, &err)
	if n, err = f.handle.ReadAt(f.fs.ctx, p, f.read); err == io.EOF {
		err = nil
	}
	f.read += int64(n)
	return n, errorOf(nodes.Fail(f.node, f.name, "read", err))
}

// Seek sets the offset of Read.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += f.read
	case io.SeekEnd:
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		offset += info.Size()
	}
	if offset < 0 {
		return 0, &iofs.PathError{Op: "seek", Path: f.path, Err: syscall.EINVAL}
	}
	f.read = offset
	return offset, nil
}

// Write writes at the current offset. Like write(2), it keeps the bytes before an error.
func (f *File) Write(p []byte) (written int, err error) {
	defer f.fs.answer("write", f.path, &err)
	h, ok := f.handle.(nodes.WriteHandle)
	if !ok {
		return 0, syscall.EBADF
	}
	for written < len(p) {
		n, errno := h.Write(f.fs.ctx, p[written:min(written+maxWrite, len(p))], f.written)
		if n == 0 && errno == 0 {
			errno = syscall.EIO
		}
		if errno != 0 {
			return written, errno
		}
		f.written += int64(n)
		written += n
	}
	return written, nil
}

// maxWrite bounds the bytes of one write, as in the kernel.
const maxWrite = 128 << 10

// Flush does the work of close(2) on a descriptor: it executes the written lines and returns the
// error. The file stays open.
func (f *File) Flush() (err error) {
	defer f.fs.answer("close", f.path, &err)
	if h, ok := f.handle.(nodes.WriteHandle); ok {
		return errorOf(h.Flush(f.fs.ctx))
	}
	return nil
}

// Close closes the file; its error is that of Flush.
func (f *File) Close() error {
	if !f.closed {
		f.err = f.Flush()
		f.Abandon()
	}
	return f.err
}

// Abandon closes the file without a Flush: an incomplete line is not executed.
func (f *File) Abandon() {
	if !f.closed {
		f.closed = true
		f.handle.Close()
	}
}
