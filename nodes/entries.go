package nodes

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
)

// EntriesDir is entries/: a file for each entry, listed in file order.
type EntriesDir struct{ snapshotDir }

// find uses the entry number of a listed item if that entry still has the name.
func (d *EntriesDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	name, ok := strings.CutSuffix(it.name, layout.EntrySuffix)
	if !ok {
		return child{}, syscall.ENOENT
	}
	e := sessioncore.Entry(it.number)
	if it.number == unnumbered || int(e) >= snap.Len() || snap.Name(e) != name {
		var err error
		if e, err = snap.FindName(name); err != nil {
			return child{}, err
		}
	}
	state, err := snap.EntryState(e)
	if err != nil {
		return child{}, err
	}
	fillEntry(snap, e, state, out)
	// Another content has another identity for the kernel.
	content := uint64(state.Size)<<32 ^ state.Sum
	return child{mode: syscall.S_IFREG, content: content, make: func() fusefs.InodeEmbedder {
		return &EntryFile{node: node{view: d.view}, session: d.session, name: name, state: state}
	}}, nil
}

func (d *EntriesDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	items := make([]item, snap.Len())
	for e := range items {
		items[e] = d.newItem(snap.Name(sessioncore.Entry(e))+layout.EntrySuffix, syscall.S_IFREG)
		items[e].number = int32(e)
	}
	return items, nil
}

// EntryFile is entries/<id>.json: an entry as persisted, and a newline. The node holds the name and no
// content. It stands for one state of the entry: if a rewrite of the session changes the entry, a lookup
// finds another node with the same name and inode number. So the kernel may keep its pages, and a reader
// can finish reading the old one.
type EntryFile struct {
	node
	session *sessioncore.Session
	name    string // in entries/, without its suffix
	state   sessioncore.EntryState
	stored  atomic.Bool // the kernel was given the content
}

// find acquires the session and finds the entry in it. The error is errReplaced if the entry is no longer in the node's
// state. Callers must release the snapshot.
func (f *EntryFile) find(ctx context.Context) (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, err := f.session.Acquire(ctx)
	if err != nil {
		return nil, 0, err
	}
	e, err := snap.FindName(f.name)
	if err == nil {
		var state sessioncore.EntryState
		if state, err = snap.EntryState(e); err == nil && state != f.state {
			err = errReplaced
		}
	}
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

func (f *EntryFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	snap, e, err := f.find(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	fillEntry(snap, e, f.state, out)
	return nil
}

// fillEntry sets the attributes of a file that shows an entry, or a branch that ends at it. The change time is the entry's
// time too, but its part below a millisecond comes from the content, so that a backup program that compares times notices
// what was rewritten with the same size.
func fillEntry(snap *sessioncore.Snapshot, e sessioncore.Entry, state sessioncore.EntryState, out *fuse.Attr) {
	fillFile(out, snap.Stat(), state.Size)
	modified := snap.Time(e)
	fillTimes(out, modified, modified.Add(time.Duration(state.Sum%1e6)))
}

func (f *EntryFile) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*EntryFile)(nil))

// Getattr returns size and times of the entry; an open handle keeps those of its version after a rewrite.
func (f *EntryFile) Getattr(ctx context.Context, fh fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	err := f.fillAttr(ctx, &out.Attr)
	if h, ok := fh.(*entryHandle); ok && err != nil {
		out.Attr, err = h.attr, nil
	}
	if err != nil {
		return f.fail("stat", staleIfGone(err))
	}
	out.SetTimeout(f.cache().attr)
	return 0
}

var _ = (fusefs.NodeOpener)((*EntryFile)(nil))

// Open pins the entry. It returns ESTALE if the entry is no longer what the kernel was told: the kernel then
// looks up the path again and retries, so that a size that it has cached never truncates a read.
func (f *EntryFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open")
	}
	snap, e, err := f.find(ctx)
	if err != nil {
		return nil, 0, f.fail("open", staleIfGone(err))
	}
	defer snap.Release()
	doc, err := snap.EntryDocument(e)
	if err != nil {
		return nil, 0, f.fail("open", err)
	}
	h := &entryHandle{file: f, doc: doc}
	h.store()
	fillEntry(snap, e, f.state, &h.attr)
	return h, forReading | fuse.FOPEN_KEEP_CACHE, 0
}

// entryHandle is an open entry.
type entryHandle struct {
	file *EntryFile
	attr fuse.Attr // when it was opened
	doc  *document.Document
}

var _ = (fusefs.FileReader)((*entryHandle)(nil))

// Read reads a part of the entry. It is not spliced from the session file: an entry lies at any offset, and
// for a range that is not aligned to pages go-fuse's pipe can come up one page short, which the kernel
// would take for the entry's end.
func (h *entryHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return readAt(h.doc, dest, off, &h.file.node)
}

// storeLimit is the largest entry that store sends to the kernel, in bytes: what the kernel would ask for in one
// read. Nearly all entries are shorter.
const storeLimit = 128 << 10

// storeBuffers hold entries on their way to the kernel.
var storeBuffers = sync.Pool{New: func() any { return new([storeLimit]byte) }}

// store sends the entry's content to the kernel's page cache before the first open returns, which saves the round trip
// of the read that will follow. That is correct, as a node stands for one content, whose pages are kept between
// opens anyway. If the kernel drops them, it reads them again.
//
// Unlike other notifications this one can be sent from a handler: the kernel takes only the locks of the
// file's pages for it, and only reads of this file hold these.
func (h *entryHandle) store() {
	size := h.doc.Size()
	if size > storeLimit || h.file.stored.Swap(true) {
		return
	}
	buf := storeBuffers.Get().(*[storeLimit]byte)
	defer storeBuffers.Put(buf)
	if _, err := h.doc.ReadAt(buf[:size], 0); err == nil { // else the read returns the error
		_ = h.file.WriteCache(0, buf[:size])
	}
}

var _ = (fusefs.FileReleaser)((*entryHandle)(nil))

// Release releases the pinned file.
func (h *entryHandle) Release(context.Context) syscall.Errno {
	h.doc.Close()
	return 0
}
