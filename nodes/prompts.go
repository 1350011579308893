package nodes

import (
	"bytes"
	"context"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/history"
)

// PromptsFile is history/prompts.jsonl and history/search/<query>: prompts as JSON lines, newest first. The
// content is held by the handle; the node keeps only its size.
type PromptsFile struct {
	node
	prompts *history.History
	match   string // the query, empty for all prompts
	// last is the last measure, which has the size as long as the database is in the same state.
	last atomic.Pointer[history.Measure]
}

func newPromptsFile(view *View, prompts *history.History, match string) *PromptsFile {
	return &PromptsFile{node: node{view: view}, prompts: prompts, match: match}
}

func (f *PromptsFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	state, err := f.prompts.State()
	if err != nil {
		return err
	}
	m := f.last.Load()
	if m == nil || m.State != state {
		now, err := f.prompts.Measure(ctx, f.match)
		if err != nil {
			return err
		}
		f.remember(now)
		m = &now
	}
	f.fillPrivate(out, m.State.Stat(), syscall.S_IFREG, m.Size)
	return nil
}

func (f *PromptsFile) remember(m history.Measure) {
	if m.Settled {
		f.last.Store(&m)
	}
}

var _ = (fusefs.NodeOpener)((*PromptsFile)(nil))

// Open renders the current prompts.
func (f *PromptsFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	if err := f.view.Access.ownerOnly(ctx); err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	var room int64
	if last := f.last.Load(); last != nil {
		room = last.Size
	}
	text, m, err := f.prompts.Render(ctx, f.match, room)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	f.remember(m)
	return &contentHandle{&f.node, bytes.NewReader(text)}, forReading | fuse.FOPEN_DIRECT_IO, 0
}
