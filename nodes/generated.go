package nodes

import (
	"context"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// render makes a generated file's content from a snapshot.
type render func(*View, *sessioncore.Snapshot) (*sessioncore.Document, error)

// slowFiles are generated files for whose size much of the session may have to be read. A mere listing does
// without their attributes until they are known: who wants them asks for them one by one.
var slowFiles = map[string]bool{"context.json": true, "transcript.md": true, "usage.json": true}

// GeneratedFile is a file of a session's directory that is made from the session: header.json, context.json,
// problems.jsonl, transcript.md, usage.json, and what reading title and labels shows. What is read through
// one handle is one version, whole; so the kernel keeps no pages of it (design.md section 6).
type GeneratedFile struct {
	node
	session *sessioncore.Session
	render  render
	// size remembers the size for a snapshot, so that a stat does not make the file anew.
	size atomic.Pointer[renderedSize]
}

type renderedSize struct{ serial, bytes int64 }

func generated(r render) func(*SessionDir) fusefs.InodeEmbedder {
	return func(d *SessionDir) fusefs.InodeEmbedder {
		return &GeneratedFile{node: node{view: d.view}, session: d.session, render: r}
	}
}

func (f *GeneratedFile) fillAttr(out *fuse.Attr) error {
	snap, err := f.session.Acquire()
	if err != nil {
		return err
	}
	defer snap.Release()
	size := f.size.Load()
	if size == nil || size.serial != snap.Serial() {
		doc, err := f.render(f.view, snap)
		if err != nil {
			return err
		}
		size = &renderedSize{snap.Serial(), doc.Size()}
		if !doc.HasBlobs() { // blobs can come and go without the session changing
			f.size.Store(size)
		}
		doc.Close()
	}
	fillFile(out, snap.Stat(), size.bytes)
	return nil
}

func (f *GeneratedFile) cache() cacheRule { return cacheNever }

var _ = (fusefs.NodeGetattrer)((*GeneratedFile)(nil))

// Getattr tells the exact size.
func (f *GeneratedFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.getattr(f, out)
}

var _ = (fusefs.NodeOpener)((*GeneratedFile)(nil))

// Open renders the file from what the session is now.
func (f *GeneratedFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	snap, err := f.session.Acquire()
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	defer snap.Release()
	doc, err := f.render(f.view, snap)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	return &documentHandle{node: &f.node, doc: doc}, forReading | fuse.FOPEN_DIRECT_IO, 0
}

// documentHandle is an open generated file.
type documentHandle struct {
	node *node
	doc  *sessioncore.Document
}

var _ = (fusefs.FileReader)((*documentHandle)(nil))

// Read reads a part of the document.
func (h *documentHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return readAt(h.doc, dest, off, h.node)
}

var _ = (fusefs.FileReleaser)((*documentHandle)(nil))

// Release lets the document go.
func (h *documentHandle) Release(context.Context) syscall.Errno {
	h.doc.Close()
	return 0
}
