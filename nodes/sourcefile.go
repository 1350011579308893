package nodes

import (
	"context"
	"fmt"
	"io/fs"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// SourceFile is a file of SOURCE, byte for byte: a raw session file, an artifact, a blob, a breadcrumb. It is read-only.
// Like EntryFile it stands for one file: a file that replaces it is another node.
type SourceFile struct {
	node
	storage storage.Files
	file    string        // path in storage
	object  storage.Token // device and inode only

	cached atomic.Pointer[storage.Token] // of the content of which the kernel may have pages
}

func (f *SourceFile) stat() (storage.Stat, error) {
	st, err := f.storage.Stat(f.file)
	switch {
	case err != nil:
	case st.Kind != storage.KindFile:
		err = fmt.Errorf("%w: it is no file any more", fs.ErrNotExist)
	case !st.SameObject(f.object):
		err = errReplaced
	}
	return st, err
}

func (f *SourceFile) fillAttr(_ context.Context, out *fuse.Attr) error {
	st, err := f.stat()
	if err == nil {
		f.fillSource(out, st)
	}
	return err
}

func (f *SourceFile) fillSource(out *fuse.Attr, st storage.Stat) {
	fillFile(out, st, st.Size)
	out.Mode = syscall.S_IFREG | st.Mode
	out.Mode &^= writeBits // execute bits are kept
}

var _ = (fusefs.NodeGetattrer)((*SourceFile)(nil))

// Getattr mirrors the file; an open handle keeps showing it after it is replaced. All handles of a node
// are of one file.
func (f *SourceFile) Getattr(ctx context.Context, fh fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if h, ok := fh.(*sourceHandle); ok {
		if st, err := h.obj.Stat(); err == nil {
			f.fillSource(&out.Attr, st)
			return 0
		}
	}
	return f.node.Getattr(ctx, fh, out)
}

var _ = (fusefs.NodeOpener)((*SourceFile)(nil))

// Open pins the file. Its pages stay in the kernel's cache while it does not change.
func (f *SourceFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open")
	}
	obj, err := storage.Await(ctx, func() (storage.Object, error) { return f.storage.Open(f.file) }, func(o storage.Object) { _ = o.Close() })
	if err != nil {
		return nil, 0, f.fail("open", staleIfGone(err))
	}
	st, err := obj.Stat()
	if err == nil && !st.SameObject(f.object) {
		err = storage.ErrStale // the kernel looks up the path again
	}
	if err != nil {
		_ = obj.Close()
		return nil, 0, errnoOf(err)
	}
	fuseFlags := uint32(forReading)
	if before := f.cached.Swap(&st.Token); before != nil && *before == st.Token {
		fuseFlags |= fuse.FOPEN_KEEP_CACHE
	}
	return &sourceHandle{file: f, obj: obj}, fuseFlags, 0
}

// openFile is an object that is an open file of this process.
type openFile interface{ Fd() uintptr }

// sourceHandle is an open file of SOURCE.
type sourceHandle struct {
	file *SourceFile
	obj  storage.Object
}

var _ = (fusefs.FileReader)((*sourceHandle)(nil))

// Read reads the pinned file; if possible the bytes are spliced to the kernel. It asks for whole pages, for its cache;
// for other offsets go-fuse's pipe can return too little (see EntryFile).
func (h *sourceHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off%pageSize == 0 {
		if file, ok := h.obj.(openFile); ok {
			return fuse.ReadResultFd(file.Fd(), off, len(dest)), 0
		}
	}
	return readAt(h.obj, dest, off, &h.file.node)
}

// pageSize is that of the kernel's cache.
const pageSize = 4096

var _ = (fusefs.FilePassthroughFder)((*sourceHandle)(nil))

// PassthroughFd gives the kernel the file, to read it without a request to the server. That needs privilege and
// Linux 6.9, which go-fuse checks. The kernel accepts one file for each node, and a node stands for one file: a file that
// replaces it is another node.
func (h *sourceHandle) PassthroughFd() (int, bool) {
	file, ok := h.obj.(openFile)
	if !ok {
		return 0, false
	}
	fd := int(file.Fd())
	return fd, !stacked(fd)
}

// stacked reports whether a file is on a file system that is stacked on another one. The kernel refuses these for
// passthrough. After one refusal go-fuse stops using passthrough, also for files that are open with it; these could then
// not be opened again.
func stacked(fd int) bool {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return true
	}
	switch int64(st.Type) {
	case 0x794c7630, 0xf15f, 0x65735546: // overlayfs, ecryptfs and FUSE, as Linux numbers them
		return true
	}
	return false
}

var _ = (fusefs.FileReleaser)((*sourceHandle)(nil))

// Release closes the file.
func (h *sourceHandle) Release(context.Context) syscall.Errno {
	return errnoOf(h.obj.Close())
}

// sourceTarget returns the findTarget of a symbolic link in the directory: its target is shown as it is and never
// followed.
func (d *SourceDir) sourceTarget(file string) findTarget {
	s := d.storage
	return func(ctx context.Context) (target, error) {
		st, err := s.Stat(file)
		return target{path: st.Link, st: st}, err
	}
}
