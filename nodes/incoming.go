package nodes

import (
	"context"
	"io"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/storage"
)

// IncomingFile is a file that is being copied into sessions/, until it appears there. It is not listed, and found by a
// temporary name only, as those that programs copy to and then rename: sessions/<project>/.<session>.jsonl.AbCdEf.
type IncomingFile struct {
	node
	c *copying
}

func (f *IncomingFile) fillAttr(_ context.Context, out *fuse.Attr) error { return f.c.fillAttr(out) }

var _ = (fusefs.NodeOpener)((*IncomingFile)(nil))

// Open opens a copy under a temporary name once more.
func (f *IncomingFile) Open(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if err := f.c.open(); err != nil {
		return nil, 0, errnoOf(err)
	}
	return &copyHandle{c: f.c}, fuse.FOPEN_DIRECT_IO, 0
}

var _ = (fusefs.NodeSetattrer)((*IncomingFile)(nil))

// Setattr sets what the file will have once it has its name.
func (f *IncomingFile) Setattr(ctx context.Context, _ fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if err := f.c.change(ctx, in); err != nil {
		return f.view.fail("setattr", f.path(), err)
	}
	if err := f.c.fillAttr(&out.Attr); err != nil {
		return errnoOf(err)
	}
	return 0
}

// change carries out a SETATTR for a copy.
func (c *copying) change(ctx context.Context, in *fuse.SetAttrIn) error {
	if size, ok := in.GetSize(); ok {
		if err := c.setSize(ctx, int64(size)); err != nil {
			return err
		}
	}
	st, err := c.stat()
	if err != nil {
		return err
	}
	a, err := attributesOf(c.as, in, st)
	if err != nil || a == (storage.Attributes{}) {
		return err
	}
	return c.setAttributes(ctx, a)
}

// attributesOf returns what a SETATTR changes of a file's attributes. The kernel has checked that the caller owns the file;
// to give it away takes root, or the rights of the daemon where it is the caller's own.
func attributesOf(as *access.Caller, in *fuse.SetAttrIn, st storage.Stat) (a storage.Attributes, err error) {
	if mode, ok := in.GetMode(); ok {
		mode &= dirBits
		a.Mode = &mode
	}
	if t, ok := in.GetMTime(); ok {
		ns := t.UnixNano()
		a.Modified = &ns
	}
	if t, ok := in.GetATime(); ok {
		ns := t.UnixNano()
		a.Accessed = &ns
	}
	if uid, ok := in.GetUID(); ok && uid != st.UID {
		a.UID = &uid
	}
	if gid, ok := in.GetGID(); ok && gid != st.GID {
		a.GID = &gid
	}
	if as != nil && (a.UID != nil || a.GID != nil) {
		err = syscall.EPERM
	}
	return a, err
}

// copyHandle is an open file that is being copied in.
type copyHandle struct {
	c *copying
	// pid is the thread that opened it, where several copies may be of one node, and done is called at the end.
	pid  uint32
	done func()
}

var _ = (fusefs.FileWriter)((*copyHandle)(nil))

// Write takes a piece of the copy.
func (h *copyHandle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	return h.c.write(ctx, data, off)
}

var _ = (fusefs.FileReader)((*copyHandle)(nil))

// Read reads what has come.
func (h *copyHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := h.c.readAt(dest, off)
	if err != nil {
		return nil, errnoOf(err)
	}
	return readBytes(dest[:n]), 0
}

func (c *copying) readAt(dest []byte, off int64) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := io.ReaderAt(c.in)
	switch {
	case c.discarded:
		return 0, storage.ErrStale
	case c.in == nil && c.over != nil && !c.begun:
		from = c.over
	case c.in == nil:
		return 0, nil
	}
	n, err := from.ReadAt(dest, off)
	if err == io.EOF {
		err = nil
	}
	return n, err
}

var _ = (fusefs.FileFlusher)((*copyHandle)(nil))

// Flush is called for each close(2).
func (h *copyHandle) Flush(ctx context.Context) syscall.Errno { return h.c.close(ctx) }

var _ = (fusefs.FileFsyncer)((*copyHandle)(nil))

// Fsync has nothing to do: the content is made durable before the name.
func (h *copyHandle) Fsync(context.Context, uint32) syscall.Errno { return h.c.sync() }

var _ = (fusefs.FileReleaser)((*copyHandle)(nil))

// Release is called after the last close.
func (h *copyHandle) Release(context.Context) syscall.Errno {
	if h.done != nil {
		h.done()
	}
	h.c.release()
	return 0
}
