package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// ContentFile is a file that is made as a whole when it is opened: index.jsonl, usage.jsonl, lost.tsv, results.tsv, prompts,
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

// maxIndexListed is for how many sessions index.jsonl is listed. Whoever stats all that is in its directory, as ls -l and
// ls --color do, waits for its size, and that takes a look at every session: some 0.4 s for so many.
const maxIndexListed = 10_000

// IndexName is index.jsonl as a name in a directory: one line for each session, newest first (docs/design.md section 5).
// The lines are rendered as they are read.
var IndexName = Name{
	Name: "index.jsonl", Mode: syscall.S_IFREG, Make: newIndexFile,
	Is: func(view *View, ctx context.Context) Presence {
		if many, err := view.Listing.Exceeds(ctx, maxIndexListed); err == nil && many {
			return Hidden
		}
		return Listed // an error is for who looks at the file
	},
}

func newIndexFile(view *View) fusefs.InodeEmbedder {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		sessions, err := view.Listing.Sessions(ctx)
		if err != nil {
			return content{}, err
		}
		index := sessions.Index()
		return content{text: index, size: index.Size(), stat: sessions.Stat(), private: true}, nil
	}
	return &ContentFile{node: node{view: view}, render: render}
}

// OverAllName is a file about all sessions, such as usage.jsonl (docs/design.md section 5). Both its size and its content take
// reading every session that changed, so it is not listed.
func OverAllName(name string, text func(context.Context, []*listing.Info, *budget.Hold) ([]byte, error)) Name {
	make := func(view *View) fusefs.InodeEmbedder {
		return &ContentFile{node: node{view: view}, render: func(ctx context.Context, hold *budget.Hold) (content, error) {
			sessions, err := view.Listing.Sessions(ctx)
			if err != nil {
				return content{}, err
			}
			text, err := text(ctx, sessions.All(), hold)
			if err != nil {
				return content{}, err
			}
			c := textContent(text, sessions.Stat())
			c.private = true
			return c, hold.Resize(c.size)
		}}
	}
	return Name{name, syscall.S_IFREG, make, func(*View, context.Context) Presence { return Hidden }}
}

// makeLastError makes last-error: why the last write to the session was refused, in words, with its time, and what to do
// instead. It is empty again after the next one that succeeds.
func makeLastError(d *SessionDir) fusefs.InodeEmbedder {
	return newLastErrorFile(d.view, d.session.Name(), d.session.Probe)
}

// LastErrorName is last-error of the root of a mount of source: why the last write or look-up was refused that concerns no
// session.
func LastErrorName(source storage.Files) Name {
	stat := func(context.Context) (storage.Stat, error) { return source.Stat("") }
	return Name{"last-error", syscall.S_IFREG, func(view *View) fusefs.InodeEmbedder { return newLastErrorFile(view, outside, stat) }, nil}
}

func newLastErrorFile(view *View, of string, stat func(context.Context) (storage.Stat, error)) *ContentFile {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		st, err := stat(ctx)
		if err != nil {
			return content{}, err
		}
		if of == outside && view.Memory.Full() == "" {
			view.found(memoryFull)
		}
		text, at := view.refusalsOf(of).get(of)
		c := textContent([]byte(text), st)
		c.at, c.private = at, of == outside
		return c, nil
	}
	return &ContentFile{node: node{view: view}, render: render}
}

// makeOwner makes …/<session>/owner: one line that says what is known of the client that has the session open, or nothing.
// It is made anew for each open and each stat, since the client may have come or gone. That takes a search of /proc, so
// the file is not listed: a crawler would cause one for each session.
func makeOwner(d *SessionDir) fusefs.InodeEmbedder {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		st, err := d.session.Probe(ctx)
		if err != nil {
			return content{}, err
		}
		owner, err := d.view.Writer.Owner(ctx, d.session)
		if err != nil {
			return content{}, err
		}
		var text []byte
		if owner != nil {
			if text, err = json.Marshal(owner); err != nil {
				return content{}, err
			}
			text = append(text, '\n')
		}
		c := textContent(text, st)
		c.private = true
		return c, nil
	}
	return &ContentFile{node: node{view: d.view}, render: render}
}

// hasOwner reports whether there is an owner, unlisted. Who is working now is not what somebody shares who masks secrets,
// and no client works on an archived session.
func (d *SessionDir) hasOwner(context.Context) Presence {
	if d.view.Redacted || d.view.Archived() {
		return Absent
	}
	return Hidden
}
