package nodes

import (
	"context"
	"fmt"
	"io/fs"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// SourceFile is a file of SOURCE, byte for byte and read-only: a raw session file, an artifact, a blob,
// a breadcrumb.
type SourceFile struct {
	node
	storage sessioncore.Storage
	file    string // path in storage
	opened  openState[sessioncore.Token]
}

func (f *SourceFile) stat() (sessioncore.Stat, error) {
	st, err := f.storage.Stat(f.file)
	if err == nil && st.Kind != sessioncore.KindFile {
		err = fmt.Errorf("%w: it is no file any more", fs.ErrNotExist)
	}
	return st, err
}

func (f *SourceFile) fillAttr(out *fuse.Attr) error {
	st, err := f.stat()
	if err != nil {
		return err
	}
	fillFile(out, st, st.Size)
	out.Mode = syscall.S_IFREG | st.Mode
	return nil
}

func (f *SourceFile) cache() cacheRule { return cacheNever }

var _ = (fusefs.NodeGetattrer)((*SourceFile)(nil))

// Getattr mirrors the file.
func (f *SourceFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.getattr(f, out)
}

var _ = (fusefs.NodeOpener)((*SourceFile)(nil))

// Open pins the file as it is now. Its pages stay in the kernel's cache while it does not change.
func (f *SourceFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	obj, err := f.storage.Open(f.file)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	st, err := obj.Stat()
	if err != nil {
		_ = obj.Close()
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	h := &sourceHandle{file: f, obj: obj}
	var fuseFlags uint32
	fuseFlags, h.counted = f.opened.open(st.Token, sessioncore.Token.SameObject)
	return h, fuseFlags, 0
}

// sourceHandle is an open file of SOURCE.
type sourceHandle struct {
	file    *SourceFile
	obj     sessioncore.Object
	counted bool
}

var _ = (fusefs.FileReader)((*sourceHandle)(nil))

// Read reads the pinned file; the kernel takes the bytes from it without a copy where it can: where it
// asks for whole pages, as it does for its cache (see EntryFile for the others).
func (h *sourceHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if file, ok := h.obj.(sessioncore.Filer); ok && h.counted {
		return fuse.ReadResultFd(file.Fd(), off, len(dest)), 0
	}
	return readAt(h.obj, dest, off, &h.file.node)
}

var _ = (fusefs.FileReleaser)((*sourceHandle)(nil))

// Release lets the file go.
func (h *sourceHandle) Release(context.Context) syscall.Errno {
	h.file.opened.close(h.counted)
	return errnoOf(h.obj.Close())
}

// SourceLink is a symbolic link of SOURCE, shown as it is and never followed by us.
type SourceLink struct {
	node
	storage sessioncore.Storage
	file    string
}

func (l *SourceLink) target() (string, error) {
	linker, ok := l.storage.(sessioncore.Linker)
	if !ok {
		return "", fs.ErrNotExist
	}
	return linker.Readlink(l.file)
}

func (l *SourceLink) fillAttr(out *fuse.Attr) error {
	st, err := l.storage.Stat(l.file)
	if err != nil {
		return err
	}
	target, err := l.target()
	if err != nil {
		return err
	}
	fillLink(out, st, target)
	return nil
}

func (l *SourceLink) cache() cacheRule { return cacheNever }

var _ = (fusefs.NodeGetattrer)((*SourceLink)(nil))

// Getattr mirrors the link.
func (l *SourceLink) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return l.getattr(l, out)
}

var _ = (fusefs.NodeReadlinker)((*SourceLink)(nil))

// Readlink returns the target as stored.
func (l *SourceLink) Readlink(context.Context) ([]byte, syscall.Errno) {
	target, err := l.target()
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	return []byte(target), 0
}
