package nodes

import (
	"context"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// render renders a generated file from a snapshot.
type render func(context.Context, *sessioncore.Snapshot) (*document.Document, error)

// renderAt renders what depends on an entry: the leaf, or the end of a branch.
type renderAt func(context.Context, *sessioncore.Snapshot, sessioncore.Entry) (*document.Document, error)

// atLeaf renders at the leaf.
func atLeaf(r renderAt) render {
	return func(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, error) {
		leaf, err := snap.Leaf()
		if err != nil {
			return nil, err
		}
		return r(ctx, snap, leaf)
	}
}

// atOnce renders what does not take long.
func atOnce(r func(*sessioncore.Snapshot) (*document.Document, error)) render {
	return func(_ context.Context, snap *sessioncore.Snapshot) (*document.Document, error) { return r(snap) }
}

// GeneratedFile is a file of a session's directory that is rendered from the session: header.json, context.json,
// problems.jsonl, secrets.jsonl, transcript.md, usage.json, and what reads of title and labels return. All reads of
// one handle see one version; so the kernel keeps no pages of it (docs/design.md section 6).
type GeneratedFile struct {
	node
	session *sessioncore.Session
	render  render
	// besides returns the state of another file that the content depends on, the zero Token if that is not there; nil if
	// it depends on the session and on blobs alone.
	besides func(context.Context) (storage.Token, error)
	// writable says that it is a control file too.
	writable bool
	follow   *following // nil if open handles keep their version
	line     line
	// size caches the size for a snapshot, so that a stat does not render the file again.
	size atomic.Pointer[renderedSize]
}

// renderedSize is the size of the file in one snapshot.
type renderedSize struct {
	serial, bytes int64
	blobs         *storage.Token // the state of the blobs that it depends on; nil if it depends on none
	besides       storage.Token
}

// following makes the open handles of a generated file continue with newer versions, as tail -f needs it.
type following struct {
	// further renders the version that readers continue with, and reports whether it goes beyond what the file's name
	// shows; nil means what the name shows.
	further func(context.Context, *sessioncore.Snapshot) (doc *document.Document, beyond bool, err error)
	// goesOn reports whether handles that are opened now will continue; nil means yes.
	goesOn func(*sessioncore.Snapshot) bool
}

// generated returns a function that makes the node of a generated file. f is nil if open handles keep their version.
func generated(r render, f *following) func(*SessionDir) fusefs.InodeEmbedder {
	return func(d *SessionDir) fusefs.InodeEmbedder {
		return &GeneratedFile{node: node{view: d.view}, session: d.session, render: r, follow: f}
	}
}

func (f *GeneratedFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	ctx = f.line.context(ctx)
	snap, err := f.session.Acquire(ctx)
	if err == nil {
		defer snap.Release()
		f.update(ctx, snap)
	}
	if f.line.openAttr(out) {
		return nil
	}
	if err != nil {
		return err
	}
	size := f.size.Load()
	if !f.isExact(ctx, size, snap) {
		var doc *document.Document
		if doc, size, err = f.measured(ctx, snap); err != nil {
			return err
		}
		doc.Close()
	}
	f.fill(out, snap, size.bytes)
	return nil
}

func (f *GeneratedFile) fill(out *fuse.Attr, snap *sessioncore.Snapshot, size int64) {
	if f.writable {
		f.fillWritable(out, snap.Stat(), size)
	} else {
		fillFile(out, snap.Stat(), size)
	}
}

// measured renders the file and remembers its size.
func (f *GeneratedFile) measured(ctx context.Context, snap *sessioncore.Snapshot) (*document.Document, *renderedSize, error) {
	blobs, now := f.view.blobsState(), time.Now().UnixNano()
	besides, err := f.stateBesides(ctx)
	if err != nil {
		return nil, nil, err
	}
	doc, err := f.render(ctx, snap)
	if err != nil {
		return nil, nil, err
	}
	size := &renderedSize{serial: snap.Serial(), bytes: doc.Size(), besides: besides}
	exact := besides == storage.Token{} || !besides.Racy(now)
	if doc.HasBlobs() {
		size.blobs, exact = blobs, exact && blobs != nil && !blobs.Racy(now)
	}
	if exact {
		f.size.Store(size)
	}
	return doc, size, nil
}

func (f *GeneratedFile) stateBesides(ctx context.Context) (storage.Token, error) {
	if f.besides == nil {
		return storage.Token{}, nil
	}
	return f.besides(ctx)
}

// isExact reports whether a size is that of the file in a snapshot. Blobs and another session can come and go without
// the session changing.
func (f *GeneratedFile) isExact(ctx context.Context, size *renderedSize, snap *sessioncore.Snapshot) bool {
	if size == nil || size.serial != snap.Serial() {
		return false
	}
	if besides, err := f.stateBesides(ctx); err != nil || besides != size.besides {
		return false
	}
	if size.blobs == nil {
		return true
	}
	now := f.view.blobsState()
	return now != nil && *now == *size.blobs
}

// shown returns the version that the file's name shows in a snapshot.
func (f *GeneratedFile) shown(ctx context.Context, snap *sessioncore.Snapshot) (s shown, err error) {
	var size *renderedSize
	if s.version, size, err = f.measured(ctx, snap); err != nil {
		return s, err
	}
	f.fill(&s.attr, snap, size.bytes)
	return s, f.hold(s.version)
}

// hold counts what a document takes until it is closed. If there is no room, it is closed at once.
func (f *GeneratedFile) hold(doc *document.Document) error {
	hold := f.view.Memory.Hold()
	err := hold.ResizeShown(doc.Memory())
	doc.OnClose(hold.Close)
	if err != nil {
		doc.Close()
	}
	return err
}

// update makes open handles continue with a newer version.
func (f *GeneratedFile) update(ctx context.Context, snap *sessioncore.Snapshot) {
	f.line.update(ctx, snap, func(goesOn bool) (s shown, err error) {
		if f.follow.further == nil || !goesOn {
			return f.shown(ctx, snap)
		}
		if s.version, s.beyond, err = f.follow.further(ctx, snap); err != nil {
			return s, err
		}
		f.fill(&s.attr, snap, s.version.Size())
		return s, f.hold(s.version)
	})
}

// goOn is update to the newest version.
func (f *GeneratedFile) goOn(ctx context.Context) {
	if snap, err := f.session.Acquire(ctx); err == nil {
		f.update(ctx, snap)
		snap.Release()
	}
}

func (f *GeneratedFile) goesOn(snap *sessioncore.Snapshot) bool {
	return f.follow.goesOn == nil || f.follow.goesOn(snap)
}

func (f *GeneratedFile) follows() bool { return f.follow != nil }

func (f *GeneratedFile) standsFor(ctx context.Context, _ uint64) bool {
	snap, err := f.session.Acquire(ctx)
	if err != nil {
		return true // the next operation returns the error
	}
	defer snap.Release()
	f.update(ctx, snap)
	return f.line.isCurrent(snap, func() bool { return f.goesOn(snap) })
}

var _ = (fusefs.NodeOpener)((*GeneratedFile)(nil))

// Open renders the file from the current snapshot.
func (f *GeneratedFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open")
	}
	h, errno := f.handle(ctx)
	if errno != 0 {
		return nil, 0, errno
	}
	return h, forReading | fuse.FOPEN_DIRECT_IO, 0
}

func (f *GeneratedFile) handle(ctx context.Context) (*documentHandle, syscall.Errno) {
	snap, err := f.session.Acquire(ctx)
	if err != nil {
		return nil, f.fail("open", staleIfGone(err))
	}
	defer snap.Release()
	first := func() (shown, error) { return f.shown(ctx, snap) }
	if f.follow != nil {
		f.update(ctx, snap)
		joined, err := f.line.open(ctx, snap, f.goesOn(snap), first)
		if err != nil {
			return nil, f.fail("open", err)
		}
		if joined {
			return &documentHandle{&f.node, &f.line, f.goOn}, 0
		}
		// The session has changed otherwise since the name was looked up.
	}
	h := &documentHandle{node: &f.node, line: &line{}}
	if _, err := h.line.open(ctx, snap, false, first); err != nil {
		return nil, f.fail("open", err)
	}
	return h, 0
}

// documentHandle is an open file that is rendered from a session.
type documentHandle struct {
	node *node
	line *line // the file's, or one of its own
	// atEnd is called when a reader comes to the end. It is nil where the kernel reads whole pages and knows the size: it
	// reads beyond the end only after a stat has returned a larger one.
	atEnd func(context.Context)
}

var _ = (fusefs.FileReader)((*documentHandle)(nil))

// Read reads a part of the document.
func (h *documentHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if h.atEnd != nil && h.line.endsBefore(off+int64(len(dest))) {
		h.atEnd(ctx)
	}
	return h.line.read(dest, off, h.node)
}

var _ = (fusefs.FileReleaser)((*documentHandle)(nil))

// Release releases the document.
func (h *documentHandle) Release(context.Context) syscall.Errno {
	h.line.release()
	return 0
}
