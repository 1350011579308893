package nodes

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/budget"
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

	mu    sync.Mutex    // guards shown
	shown *shownPrompts // what the handle shows that was opened last; nil if there is none
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
		hold := f.view.Memory.Hold()
		now, err := f.prompts.Measure(ctx, f.match, &hold)
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
		return nil, 0, f.denyWrite("open", f.path())
	}
	shown, err := f.show(ctx)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	h := &contentHandle{node: &f.node, content: bytes.NewReader(shown.text), release: func() { f.close(shown) }}
	return h, forReading | fuse.FOPEN_DIRECT_IO, 0
}

// shownPrompts is a text that open handles show.
type shownPrompts struct {
	text    []byte
	measure history.Measure
	hold    *budget.Hold // of the user who opened it first
	handles int
}

// show returns what a new handle shows: what others show, as long as the database is as it was. The caller must call
// close.
func (f *PromptsFile) show(ctx context.Context) (*shownPrompts, error) {
	if s := f.join(); s != nil {
		return s, nil
	}
	var room int64
	if last := f.last.Load(); last != nil {
		room = last.Size
	}
	hold := f.view.Memory.Hold()
	text, m, err := f.prompts.Render(ctx, f.match, room, &hold)
	if err != nil {
		return nil, err
	}
	f.remember(m)
	s := &shownPrompts{text: text, measure: m, hold: &hold, handles: 1}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shown = s
	return s, nil
}

// join returns what other handles show, nil if there is none or if the database may have changed since.
func (f *PromptsFile) join() *shownPrompts {
	state, err := f.prompts.State()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.shown; err == nil && s != nil && s.measure.Settled && s.measure.State == state {
		s.handles++
		return s
	}
	return nil
}

func (f *PromptsFile) close(s *shownPrompts) {
	f.mu.Lock()
	s.handles--
	last := s.handles == 0
	if last && f.shown == s {
		f.shown = nil
	}
	f.mu.Unlock()
	if last {
		s.hold.Close()
	}
}
