package nodes

import (
	"context"
	"slices"
	"sync"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/storage"
)

// copiesOver are the open files with which something is copied over a file that is there.
type copiesOver struct {
	mu   sync.Mutex // guards open
	open []*copyHandle
}

// of returns the last one that a thread has opened, or nil.
func (s *copiesOver) of(ctx context.Context) *copyHandle {
	by := threadOf(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range slices.Backward(s.open) {
		if h.pid == by && by != 0 {
			return h
		}
	}
	return nil
}

// openCopy opens a file to copy another version over it. What is there stays as it is, until the copy is closed and turns
// out to begin with it. Only a file that was copied in can be opened so: the kernel refuses a file that it reads without
// us, and those it never does (PassthroughFd).
func (f *SourceFile) openCopy(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if !f.isMade() || flags&syscall.O_APPEND != 0 {
		return nil, 0, f.denyWrite("open", f.path())
	}
	obj, err := f.storage.Open(f.file)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	st, err := obj.Stat()
	if err == nil && !st.SameObject(f.object) {
		err = storage.ErrStale
	}
	if c := f.view.Access.caller(ctx); err == nil && c != nil {
		err = mayFile(c, f.storage, f.root, f.file, &st, access.Write)
	}
	m, _ := f.view.copies.findMade(f.file, f.object)
	var c *copying
	if err == nil {
		c, err = f.view.newCopy(ctx, f.storage, f.file, m.kind, st.Mode)
	}
	if err != nil {
		_ = obj.Close()
		return nil, 0, f.view.refuse(outside, f.path(), f.path(), err)
	}
	c.over = obj
	h := &copyHandle{c: c, pid: threadOf(ctx)}
	h.done = func() {
		f.over.mu.Lock()
		defer f.over.mu.Unlock()
		f.over.open = slices.DeleteFunc(f.over.open, func(other *copyHandle) bool { return other == h })
	}
	f.over.mu.Lock()
	f.over.open = append(f.over.open, h)
	f.over.mu.Unlock()
	return h, fuse.FOPEN_DIRECT_IO, 0
}

var _ = (fusefs.NodeSetattrer)((*SourceFile)(nil))

// Setattr is for programs that copy: it empties what they are about to write, and sets the attributes of what they have
// written. The file itself keeps its size.
func (f *SourceFile) Setattr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	h, byHandle := fh.(*copyHandle)
	if !byHandle {
		h = f.over.of(ctx)
	}
	var err error
	if h != nil {
		err = h.changeOver(ctx, in, byHandle)
	} else if known, setErr := f.setMade(ctx, in); known {
		err = setErr
	} else {
		return f.denyWrite("setattr", f.path())
	}
	if err != nil {
		return f.view.fail("setattr", f.path(), err)
	}
	return f.node.Getattr(ctx, nil, out)
}

// changeOver is change for a copy over a file that is there. It begins with open(2) that empties the file, for which the
// kernel asks without a handle.
func (h *copyHandle) changeOver(ctx context.Context, in *fuse.SetAttrIn, byHandle bool) error {
	size, sized := in.GetSize()
	h.c.mu.Lock()
	begun := h.c.begun
	h.c.mu.Unlock()
	if !begun && (byHandle || !sized || size != 0) {
		return errNotEmptied
	}
	return h.c.change(ctx, in)
}
