package nodes

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// EntryFile is entries/<id>.json: an entry as persisted, and a newline. The node holds the name and no
// content.
type EntryFile struct {
	node
	session *sessioncore.Session
	name    string // in entries/, without its ending
	// told is the state that the kernel was told of last, nil before.
	told   atomic.Pointer[sessioncore.EntryState]
	opened openState[sessioncore.EntryState]
}

// find acquires the session and finds the entry in it; the caller releases the snapshot.
func (f *EntryFile) find() (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := f.session.Acquire()
	if err != nil {
		return nil, 0, err
	}
	e, err := snap.FindName(f.name)
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

func (f *EntryFile) fillAttr(out *fuse.Attr) error {
	snap, e, err := f.find()
	if err != nil {
		return err
	}
	defer snap.Release()
	return f.fillFrom(snap, e, out)
}

// fillFrom sets the attributes from an entry of a snapshot. The time of last change is the entry's time
// too, but the part of it below a millisecond comes from the content: a backup program that compares
// times notices an entry that was rewritten at the same size.
func (f *EntryFile) fillFrom(snap *sessioncore.Snapshot, e sessioncore.Entry, out *fuse.Attr) error {
	state, err := snap.EntryState(e)
	if err != nil {
		return err
	}
	if told := f.told.Load(); told == nil || *told != state {
		f.told.Store(&state)
	}
	fillFile(out, snap.Stat(), state.Size)
	modified := snap.Time(e)
	fillTimes(out, modified, modified.Add(time.Duration(state.Sum%1e6)))
	return nil
}

func (f *EntryFile) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*EntryFile)(nil))

// Getattr tells size and time of the entry.
func (f *EntryFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.getattr(f, out)
}

var _ = (fusefs.NodeOpener)((*EntryFile)(nil))

// Open pins the entry as it is now. Where that is not what the kernel was told, it answers ESTALE: the
// kernel looks the path up anew and tries again, so that a stat that it remembers never cuts a read.
func (f *EntryFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	snap, e, err := f.find()
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	defer snap.Release()
	state, err := snap.EntryState(e)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	if told := f.told.Load(); told == nil || *told != state {
		return nil, 0, syscall.ESTALE
	}
	h := &entryHandle{file: f}
	if r, ok := snap.EntryRange(e); ok {
		snap.Retain()
		h.snap, h.at = snap, r
	} else if h.doc, err = snap.EntryDocument(e); err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	var fuseFlags uint32
	fuseFlags, h.counted = f.opened.open(state, func(a, b sessioncore.EntryState) bool { return a == b })
	return h, fuseFlags, 0
}

// entryHandle is an open entry: a range of the pinned file, or a document for the few entries that are
// rendered.
type entryHandle struct {
	file    *EntryFile
	snap    *sessioncore.Snapshot
	at      sessioncore.FileRange
	doc     *sessioncore.Document
	counted bool
}

var _ = (fusefs.FileReader)((*entryHandle)(nil))

// Read reads a part of the entry. It is not spliced from the session file: an entry lies at any offset, and
// for a range that is not aligned to pages go-fuse's pipe can come up one page short, which the kernel
// would take for the entry's end.
func (h *entryHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if h.doc != nil {
		return readAt(h.doc, dest, off, &h.file.node)
	}
	size := min(int64(len(dest)), h.at.Size-off)
	if size <= 0 {
		return fuse.ReadResultData(nil), 0
	}
	if err := h.snap.ReadFile(dest[:size], h.at.Offset+off); err != nil {
		return nil, h.file.view.fail("read", h.file.path(), err)
	}
	return fuse.ReadResultData(dest[:size]), 0
}

var _ = (fusefs.FileReleaser)((*entryHandle)(nil))

// Release lets the pinned file go.
func (h *entryHandle) Release(context.Context) syscall.Errno {
	h.file.opened.close(h.counted)
	if h.doc != nil {
		h.doc.Close()
	} else {
		h.snap.Release()
	}
	return 0
}
