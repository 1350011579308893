package direct

import (
	"context"
	"io"
	iofs "io/fs"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxRequest is how many bytes one request carries at most.
const maxRequest = 128 << 10

// File is an open file. It is read and written from its beginning on, each with an offset of its own. It is not safe
// for concurrent use.
type File struct {
	fs      *FS
	node    node // its directories stay as long as it does
	path    string
	fh      uint64
	flag    uint32
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

// open opens the file where w stands, and takes its node.
func (w *walker) open(flag int) (*File, error) {
	switch w.kind() {
	case syscall.S_IFDIR:
		return nil, syscall.EISDIR
	case syscall.S_IFLNK:
		return nil, syscall.ELOOP
	}
	in := &fuse.OpenIn{InHeader: w.fs.header(w.last().id), Flags: uint32(flag)}
	var out fuse.OpenOut
	if err := w.fs.ask(func(gone <-chan struct{}) fuse.Status { return w.fs.raw.Open(gone, in, &out) }); err != nil {
		return nil, err
	}
	f := &File{fs: w.fs, node: *w.last(), path: w.path(), fh: out.Fh, flag: uint32(flag)}
	w.at = w.at[:len(w.at)-1]
	return f, nil
}

// Stat returns the file's attributes now.
func (f *File) Stat() (iofs.FileInfo, error) {
	in := &fuse.GetAttrIn{InHeader: f.header(), Flags_: fuse.FUSE_GETATTR_FH, Fh_: f.fh}
	var out fuse.AttrOut
	err := f.ask("stat", func(gone <-chan struct{}) fuse.Status { return f.fs.raw.GetAttr(gone, in, &out) })
	return Info{f.node.name, out.Attr}, err
}

// Read reads on.
func (f *File) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if f.fs.ctx.Err() != nil {
		return 0, context.Cause(f.fs.ctx)
	}
	p = p[:min(len(p), maxRequest)]
	in := &fuse.ReadIn{InHeader: f.header(), Fh: f.fh, Offset: uint64(f.read), Size: uint32(len(p)), Flags: f.flag}
	var data []byte
	err := f.ask("read", func(gone <-chan struct{}) fuse.Status {
		result, status := f.fs.raw.Read(gone, in, p)
		if status.Ok() {
			data, status = result.Bytes(p)
			result.Done()
		}
		return status
	})
	if err != nil {
		return 0, err
	}
	if len(data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, data) // which data may be a part of
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
		in := &fuse.WriteIn{
			InHeader: f.header(), Fh: f.fh, Offset: uint64(f.written), Size: uint32(min(len(p), maxRequest)), Flags: f.flag,
		}
		var n uint32
		err := f.ask("write", func(gone <-chan struct{}) (status fuse.Status) {
			n, status = f.fs.raw.Write(gone, in, p[:in.Size])
			if status.Ok() && n == 0 {
				status = fuse.EIO
			}
			return status
		})
		if err != nil {
			return written, err
		}
		f.written += int64(n)
		written += int(n)
		p = p[n:]
	}
	return written, nil
}

// Sync makes durable what was written.
func (f *File) Sync() error {
	in := &fuse.FsyncIn{InHeader: f.header(), Fh: f.fh}
	return f.ask("sync", func(gone <-chan struct{}) fuse.Status { return f.fs.raw.Fsync(gone, in) })
}

// Flush is what close(2) of a descriptor does: it carries out what was written and returns the error. The file stays
// open.
func (f *File) Flush() error {
	in := &fuse.FlushIn{InHeader: f.header(), Fh: f.fh}
	return f.ask("close", func(gone <-chan struct{}) fuse.Status { return f.fs.raw.Flush(gone, in) })
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
	if f.closed {
		return
	}
	f.closed = true
	f.fs.raw.Release(nil, &fuse.ReleaseIn{InHeader: f.header(), Fh: f.fh, Flags: f.flag})
	f.fs.raw.Forget(f.node.id, 1)
}

func (f *File) header() fuse.InHeader { return f.fs.header(f.node.id) }

// ask makes a request for the file.
func (f *File) ask(op string, request func(gone <-chan struct{}) fuse.Status) error {
	if err := f.fs.ask(request); err != nil {
		return &iofs.PathError{Op: op, Path: f.path, Err: err}
	}
	return nil
}
