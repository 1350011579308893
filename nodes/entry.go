package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// EntryFile is entries/<id>.json: an entry as persisted, and a newline. The node holds the name and no
// content. It stands for one state of the entry: where a rewrite of the session changed the entry, a lookup
// finds another node under the same name and inode number. So the kernel may keep its pages, and who has
// the old one open reads it to its end.
type EntryFile struct {
	node
	session *sessioncore.Session
	name    string // in entries/, without its ending
	state   sessioncore.EntryState
	stored  atomic.Bool // the kernel was given the content
}

// find acquires the session and finds the entry in it, in the node's state or else ErrStale; the caller
// releases the snapshot.
func (f *EntryFile) find() (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := f.session.Acquire()
	if err != nil {
		return nil, 0, err
	}
	e, err := snap.FindName(f.name)
	if err == nil {
		var state sessioncore.EntryState
		if state, err = snap.EntryState(e); err == nil && state != f.state {
			err = fmt.Errorf("%w: the entry %s was rewritten", storage.ErrStale, f.name)
		}
	}
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
	fillEntry(snap, e, f.state, out)
	return nil
}

// fillEntry sets the attributes of an entry's file. The time of last change is the entry's time too, but the
// part of it below a millisecond comes from the content: a backup program that compares times notices an
// entry that was rewritten at the same size.
func fillEntry(snap *sessioncore.Snapshot, e sessioncore.Entry, state sessioncore.EntryState, out *fuse.Attr) {
	fillFile(out, snap.Stat(), state.Size)
	modified := snap.Time(e)
	fillTimes(out, modified, modified.Add(time.Duration(state.Sum%1e6)))
}

func (f *EntryFile) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*EntryFile)(nil))

// Getattr tells size and time of the entry; who has it open goes on seeing it when it was rewritten.
func (f *EntryFile) Getattr(_ context.Context, fh fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	err := f.fillAttr(&out.Attr)
	if h, ok := fh.(*entryHandle); ok && err != nil {
		out.Attr, err = h.attr, nil
	}
	if err != nil {
		return f.view.fail("stat", f.path(), staleIfGone(err))
	}
	out.SetTimeout(f.cache().attr)
	return 0
}

var _ = (fusefs.NodeOpener)((*EntryFile)(nil))

// Open pins the entry. Where it is not any more what the kernel was told, it answers ESTALE: the kernel
// looks the path up anew and tries again, so that a stat that it remembers never cuts a read.
func (f *EntryFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	snap, e, err := f.find()
	if errors.Is(err, storage.ErrStale) {
		return nil, 0, syscall.ESTALE // nothing that the log should tell
	} else if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	defer snap.Release()
	h := &entryHandle{file: f, entry: e}
	if r, ok := snap.EntryRange(e); ok {
		snap.Retain()
		h.snap, h.at = snap, r
		h.store()
	} else if h.doc, err = snap.EntryDocument(e); err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	fillEntry(snap, e, f.state, &h.attr)
	return h, forReading | fuse.FOPEN_KEEP_CACHE, 0
}

// entryHandle is an open entry: a range of the pinned file, or a document for the few entries that are
// rendered.
type entryHandle struct {
	file *EntryFile
	attr fuse.Attr // when it was opened
	snap *sessioncore.Snapshot
	at   sessioncore.FileRange
	doc  *sessioncore.Document

	entry sessioncore.Entry
	mu    sync.Mutex    // guards known
	known storage.Token // a later state of the file in which the entry is as it was
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
	if err := h.read(dest[:size], off); err != nil {
		return nil, h.file.view.fail("read", h.file.path(), err)
	}
	return readBytes(dest[:size]), 0
}

func (h *entryHandle) read(p []byte, off int64) error {
	h.mu.Lock()
	known := h.known
	h.mu.Unlock()
	if err := h.snap.ReadEntry(h.entry, p, off, &known); err != nil {
		return err
	}
	h.mu.Lock()
	h.known = known
	h.mu.Unlock()
	return nil
}

// storeLimit is the largest entry that the kernel is given at its first open: what it would ask for in one
// read. Nearly all entries are shorter.
const storeLimit = 128 << 10

// storeBuffers hold entries on their way to the kernel.
var storeBuffers = sync.Pool{New: func() any { return new([storeLimit]byte) }}

// store gives the kernel the entry's content before the answer to the first open, so that it need not ask for
// it: who opens a file reads it, and a round trip costs more than the copy. It may: a node stands for one
// content, and its pages are kept from open to open anyway. The kernel drops them when it likes, and asks.
//
// Of all notifications this one can be sent while the kernel waits for us: it takes no lock but those of the
// file's pages, and only reads of this file hold these.
func (h *entryHandle) store() {
	if h.at.Size > storeLimit || h.file.stored.Swap(true) {
		return
	}
	buf := storeBuffers.Get().(*[storeLimit]byte)
	defer storeBuffers.Put(buf)
	if h.read(buf[:h.at.Size], 0) == nil { // else whoever reads hears of it
		_ = h.file.WriteCache(0, buf[:h.at.Size])
	}
}

var _ = (fusefs.FileReleaser)((*entryHandle)(nil))

// Release lets the pinned file go.
func (h *entryHandle) Release(context.Context) syscall.Errno {
	if h.doc != nil {
		h.doc.Close()
	} else {
		h.snap.Release()
	}
	return 0
}
