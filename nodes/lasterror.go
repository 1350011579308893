package nodes

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// refusals remembers for each session why the last write to it was refused.
type refusals struct {
	mu   sync.Mutex // guards last
	last map[string]refusal
}

type refusal struct {
	text string
	at   time.Time
}

// maxRefusals is for how many sessions a reason is kept; then all are forgotten, for what a user looks at
// is the last one.
const maxRefusals = 1000

func (r *refusals) note(session, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil || len(r.last) >= maxRefusals {
		r.last = map[string]refusal{}
	}
	r.last[session] = refusal{text, time.Now()}
}

func (r *refusals) get(session string) (refusal, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[session]
	return last, ok
}

// refuse notes why a write to a session was refused, in last-error and in the log, and returns the errno.
func (v *View) refuse(session, what, path string, err error) syscall.Errno {
	errno := errnoOf(err)
	v.refusals.note(session, fmt.Sprintf("%s: %v (%s)\n", what, err, errno.Error()))
	v.Log.Warn("refused", "op", "write", "path", path, "errno", errno, "why", err)
	return errno
}

// LastErrorFile is last-error: why the last write to a control file or to leaf was refused, in words.
type LastErrorFile struct {
	node
	session *sessioncore.Session
}

func makeLastError(d *SessionDir) fusefs.InodeEmbedder {
	return &LastErrorFile{node: node{view: d.view}, session: d.session}
}

func (f *LastErrorFile) fillAttr(out *fuse.Attr) error {
	st, err := f.session.Probe()
	if err != nil {
		return err
	}
	last, ok := f.view.refusals.get(f.session.Name())
	fillFile(out, st, int64(len(last.text)))
	if ok {
		fillTimes(out, last.at, last.at)
	}
	return nil
}

func (f *LastErrorFile) cache() cacheRule { return cacheNever }

var _ = (fusefs.NodeGetattrer)((*LastErrorFile)(nil))

// Getattr tells the exact size.
func (f *LastErrorFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.getattr(f, out)
}

var _ = (fusefs.NodeOpener)((*LastErrorFile)(nil))

// Open shows the reason as it is now.
func (f *LastErrorFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	last, _ := f.view.refusals.get(f.session.Name())
	return textHandle(last.text), fuse.FOPEN_DIRECT_IO, 0
}

// textHandle is an open file with a short text.
type textHandle string

var _ = (fusefs.FileReader)(textHandle(""))

// Read reads a part of the text.
func (h textHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if off >= int64(len(h)) {
		return fuse.ReadResultData(nil), 0
	}
	return readBytes(dest[:copy(dest, h[off:])]), 0
}
