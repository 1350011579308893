package nodes

import (
	"context"
	"fmt"
	"io/fs"

	"sessionfs/sessioncore/storage"
)

// SourceFile is a file of SOURCE, byte for byte: a raw session file, an artifact, a blob, a
// breadcrumb. It is read-only. Like EntryFile it stands for one file: a replacement is another
// node.
type SourceFile struct {
	node
	storage storage.Files
	file    string        // path in storage
	object  storage.Token // device and inode only
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

// Stat returns the attributes of the file.
func (f *SourceFile) Stat(context.Context) (Attr, error) {
	st, err := f.stat()
	if err != nil {
		return Attr{}, err
	}
	return sourceAttr(st), nil
}

func sourceAttr(st storage.Stat) Attr {
	a := fileAttr(st, st.Size)
	a.Mode = st.Mode &^ writeBits // execute bits are kept
	return a
}

// Open pins the file.
func (f *SourceFile) Open(ctx context.Context, _ int) (Handle, error) {
	obj, err := storage.Await(ctx,
		func() (storage.Object, error) { return f.storage.Open(f.file) }, func(o storage.Object) { _ = o.Close() })
	if err != nil {
		return nil, err
	}
	st, err := obj.Stat()
	if err == nil && !st.SameObject(f.object) {
		err = errReplaced
	}
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	return &sourceHandle{f, obj, st.Token}, nil
}

// sourceHandle is an open file of SOURCE.
type sourceHandle struct {
	file  *SourceFile
	obj   storage.Object
	token storage.Token // at the open
}

// Stat returns the attributes of the open file, also after it is replaced.
func (h *sourceHandle) Stat(ctx context.Context) (Attr, error) {
	if st, err := h.obj.Stat(); err == nil {
		return sourceAttr(st), nil
	}
	return h.file.Stat(ctx)
}

func (h *sourceHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.obj.ReadAt(p, off)
}

// Token identifies the content when the file was opened.
func (h *sourceHandle) Token() storage.Token { return h.token }

// Descriptor returns the descriptor of the file, if it is an open file of this process.
func (h *sourceHandle) Descriptor() (fd uintptr, ok bool) {
	file, ok := h.obj.(interface{ Fd() uintptr })
	if ok {
		fd = file.Fd()
	}
	return fd, ok
}

func (h *sourceHandle) Close() { _ = h.obj.Close() }

// sourceTarget returns the findTarget of a symbolic link, which is shown and never followed.
func (d *SourceDir) sourceTarget(file string) findTarget {
	s := d.storage
	return func(context.Context) (target, error) {
		st, err := s.Stat(file)
		return target{path: st.Link, st: st}, err
	}
}
