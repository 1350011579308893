package direct

import (
	"context"
	"io"
	iofs "io/fs"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// maxRequest is how many bytes are read or written at once at most: an interrupt comes in between.
const maxRequest = 128 << 10

// File is an open file. It is read and written from its beginning on, each with an offset of its own. It is not safe
// for concurrent use.
type File struct {
	fs      *FS
	file    nodes.File
	name    string
	path    string
	handle  nodes.Handle
	read    int64
	written int64
	err     error // that of Close
	closed  bool
}

var (
	_ = (iofs.File)((*File)(nil))
	_ = (io.ReadSeeker)((*File)(nil))
	_ = (io.Writer)((*File)(nil))
)

// open opens the file where w stands.
func (w *walker) open(flag int) (*File, error) {
	switch w.last().attr.Kind {
	case storage.KindDir:
		return nil, syscall.EISDIR
	case storage.KindLink:
		return nil, syscall.ELOOP
	}
	f := &File{fs: w.fs, file: w.last().node.(nodes.File), name: w.last().name, path: w.path()}
	err := w.fs.ask(func(ctx context.Context) (errno syscall.Errno) {
		f.handle, errno = nodes.OpenFile(ctx, f.file, f.name, flag)
		return errno
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Stat returns the file's attributes now.
func (f *File) Stat() (iofs.FileInfo, error) {
	of := f.file.Stat
	if version, ok := f.handle.(nodes.VersionHandle); ok {
		of = version.Stat
	}
	info := Info{name: f.name}
	err := f.ask("stat", func(ctx context.Context) (errno syscall.Errno) {
		info.attr, errno = stat(ctx, of, f.file, f.name)
		return errno
	})
	return info, err
}

// Read reads on.
func (f *File) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	if f.fs.ctx.Err() != nil {
		return 0, context.Cause(f.fs.ctx)
	}
	err = f.ask("read", func(ctx context.Context) syscall.Errno {
		var err error
		if n, err = f.handle.ReadAt(ctx, p[:min(len(p), maxRequest)], f.read); err == io.EOF {
			err = nil
		}
		return nodes.Fail(f.file, f.name, "read", err)
	})
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return 0, err
	}
	f.read += int64(n)
	return n, nil
}

// Seek sets where Read goes on.
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

// Write writes on. As with write(2), what was written before an error stays.
func (f *File) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		var n int
		err := f.ask("write", func(ctx context.Context) (errno syscall.Errno) {
			h, ok := f.handle.(nodes.WriteHandle)
			if !ok {
				return syscall.EBADF
			}
			if n, errno = h.Write(ctx, p[:min(len(p), maxRequest)], f.written); n == 0 && errno == 0 {
				errno = syscall.EIO
			}
			return errno
		})
		if err != nil {
			return written, err
		}
		f.written += int64(n)
		written += n
		p = p[n:]
	}
	return written, nil
}

// Sync makes durable what was written.
func (f *File) Sync() error {
	return f.ask("sync", func(ctx context.Context) syscall.Errno {
		if c, ok := f.file.(nodes.Control); ok {
			return c.Sync(ctx)
		}
		return syscall.ENOTSUP
	})
}

// Flush is what close(2) of a descriptor does: it carries out what was written and returns the error. The file stays
// open.
func (f *File) Flush() error {
	return f.ask("close", func(ctx context.Context) syscall.Errno {
		if h, ok := f.handle.(nodes.WriteHandle); ok {
			return h.Flush(ctx)
		}
		return 0
	})
}

// Close closes the file; its error is that of Flush.
func (f *File) Close() error {
	if !f.closed {
		f.err = f.Flush()
		f.Abandon()
	}
	return f.err
}

// Abandon closes the file without a Flush: the beginning of a line that was written is not carried out.
func (f *File) Abandon() {
	if !f.closed {
		f.closed = true
		f.handle.Close()
	}
}

// ask calls the file's node.
func (f *File) ask(op string, request func(context.Context) syscall.Errno) error {
	if err := f.fs.ask(request); err != nil {
		return &iofs.PathError{Op: op, Path: f.path, Err: err}
	}
	return nil
}
