package nodes

import (
	"bytes"
	"context"
	"io"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// ContentFile is a file that is made as a whole when it is opened: index.jsonl, usage.jsonl, results.tsv, prompts,
// last-error and owner. All reads of one open file see one version.
type ContentFile struct {
	node
	// render makes the content. It counts what it holds in hold, which it may leave as it was after an error.
	render func(ctx context.Context, hold *budget.Hold) (content, error)
	// measure is render for a stat, which needs no text; nil means render.
	measure func(ctx context.Context, hold *budget.Hold) (content, error)
}

// content is what a ContentFile shows.
type content struct {
	text io.ReaderAt
	size int64        // in bytes
	stat storage.Stat // of the file or directory behind it
	at   time.Time    // of the last change; zero for that of stat
	// private says that it shows parts of all sessions, or what somebody typed; see node.fillPrivate.
	private bool
}

// textContent returns the content that is text.
func textContent(text []byte, st storage.Stat) content {
	return content{text: bytes.NewReader(text), size: int64(len(text)), stat: st}
}

func (f *ContentFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	measure := f.measure
	if measure == nil {
		measure = f.render
	}
	hold := f.view.Memory.Hold()
	defer hold.Close()
	c, err := measure(ctx, &hold)
	if err != nil {
		return err
	}
	if c.private {
		f.fillPrivate(out, c.stat, syscall.S_IFREG, c.size)
	} else {
		fillFile(out, c.stat, c.size)
	}
	if !c.at.IsZero() {
		fillTimes(out, c.at, c.at)
	}
	return nil
}

var _ = (fusefs.NodeOpener)((*ContentFile)(nil))

// Open makes the content.
func (f *ContentFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open")
	}
	hold := f.view.Memory.Hold()
	c, err := f.render(ctx, &hold)
	if err != nil {
		hold.Close()
		return nil, 0, f.fail("open", staleIfGone(err))
	}
	return &contentHandle{&f.node, c.text, hold}, forReading | fuse.FOPEN_DIRECT_IO, 0
}

// contentHandle is an open ContentFile.
type contentHandle struct {
	node *node
	text io.ReaderAt
	hold budget.Hold
}

var _ = (fusefs.FileReader)((*contentHandle)(nil))

// Read reads a part of the content.
func (h *contentHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return readAt(h.text, dest, off, h.node)
}

var _ = (fusefs.FileReleaser)((*contentHandle)(nil))

// Release gives the content back.
func (h *contentHandle) Release(context.Context) syscall.Errno {
	h.hold.Close()
	return 0
}
