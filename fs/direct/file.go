package direct

import (
	"context"
	"io"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// maxRead and maxWrite are how many bytes one request carries at most.
const (
	maxRead  = 128 << 10
	maxWrite = 128 << 10
)

// File is an open file. It is read and written from its beginning on, each with an offset of its own. It is not safe
// for concurrent use.
type File struct {
	ctx     context.Context
	node    *Node
	fh      uint64
	flag    uint32
	read    int64
	written int64
	err     error // that of Close
	closed  bool
}

var _ = (io.ReadWriteCloser)((*File)(nil))

// Open opens a file; flag is as in os.OpenFile. Callers must close it; the node may be forgotten before. What is asked
// of the file ends when ctx is done.
func (n *Node) Open(ctx context.Context, flag int) (*File, error) {
	switch n.attr.Mode & syscall.S_IFMT {
	case syscall.S_IFDIR:
		return nil, syscall.EISDIR
	case syscall.S_IFLNK:
		return nil, syscall.ELOOP
	}
	in := &fuse.OpenIn{InHeader: n.fs.header(n.id), Flags: uint32(flag)}
	var out fuse.OpenOut
	err := n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status { return n.fs.raw.Open(gone, in, &out) })
	if err != nil {
		return nil, err
	}
	n.users.Add(1)
	return &File{ctx: ctx, node: n, fh: out.Fh, flag: uint32(flag)}, nil
}

// Info returns the file's attributes now.
func (f *File) Info() (Info, error) {
	in := &fuse.GetAttrIn{InHeader: f.node.fs.header(f.node.id), Flags_: fuse.FUSE_GETATTR_FH, Fh_: f.fh}
	var out fuse.AttrOut
	err := f.ask(func(gone <-chan struct{}) fuse.Status { return f.node.fs.raw.GetAttr(gone, in, &out) })
	return Info{f.node.Info().Name(), out.Attr}, err
}

// Read reads on.
func (f *File) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := f.ctx.Err(); err != nil {
		return 0, context.Cause(f.ctx)
	}
	p = p[:min(len(p), maxRead)]
	in := &fuse.ReadIn{InHeader: f.node.fs.header(f.node.id), Fh: f.fh, Offset: uint64(f.read), Size: uint32(len(p)), Flags: f.flag}
	var data []byte
	err := f.ask(func(gone <-chan struct{}) fuse.Status {
		result, status := f.node.fs.raw.Read(gone, in, p)
		if status.Ok() {
			data, status = result.Bytes(p)
			result.Done()
		}
		return status
	})
	if err != nil {
		return 0, pathError("read", f.node.Path(), err)
	}
	if len(data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, data) // which data may be a part of
	f.read += int64(n)
	return n, nil
}

// Write writes on. As with write(2), what was written before an error stays.
func (f *File) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		in := &fuse.WriteIn{InHeader: f.node.fs.header(f.node.id), Fh: f.fh, Offset: uint64(f.written), Size: uint32(min(len(p), maxWrite)), Flags: f.flag}
		var n uint32
		err := f.ask(func(gone <-chan struct{}) (status fuse.Status) {
			n, status = f.node.fs.raw.Write(gone, in, p[:in.Size])
			return status
		})
		if err != nil {
			return written, pathError("write", f.node.Path(), err)
		}
		if n == 0 {
			return written, pathError("write", f.node.Path(), io.ErrShortWrite)
		}
		f.written += int64(n)
		written += int(n)
		p = p[n:]
	}
	return written, nil
}

// Sync makes durable what was written.
func (f *File) Sync() error {
	in := &fuse.FsyncIn{InHeader: f.node.fs.header(f.node.id), Fh: f.fh}
	err := f.ask(func(gone <-chan struct{}) fuse.Status { return f.node.fs.raw.Fsync(gone, in) })
	return pathError("sync", f.node.Path(), err)
}

// Flush is what close(2) of a descriptor does: it carries out what was written and returns the error. The file stays
// open.
func (f *File) Flush() error {
	in := &fuse.FlushIn{InHeader: f.node.fs.header(f.node.id), Fh: f.fh}
	err := f.ask(func(gone <-chan struct{}) fuse.Status { return f.node.fs.raw.Flush(gone, in) })
	return pathError("close", f.node.Path(), err)
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
	f.node.fs.raw.Release(nil, &fuse.ReleaseIn{InHeader: f.node.fs.header(f.node.id), Fh: f.fh, Flags: f.flag})
	f.node.Forget()
}

// ask makes a request for the file.
func (f *File) ask(request func(gone <-chan struct{}) fuse.Status) error {
	return f.node.fs.ask(f.ctx, request)
}
