package nodes

import (
	"cmp"
	"context"
	"sync"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
)

// item is a name in a listing.
type item struct {
	name   string
	mode   uint32 // file type bits
	ino    uint64
	number int32 // for the directory's own use: an entry's number
	bare   bool  // it comes without attributes; the kernel looks them up where they are needed
}

// unnumbered is the number of an item that was not listed.
const unnumbered = -1

// newItem is a name in a listing of n, of the inode that a lookup finds.
func (n *node) newItem(k kind, name string, mode uint32) item {
	id := stableAttr(n.StableAttr(), k, name, mode)
	return item{name: name, mode: id.Mode, ino: id.Ino}
}

// dirHandle is an open directory: a sorted list of its names, made when reading begins, and made again when
// the reader rewinds it.
type dirHandle struct {
	dir  dirNode
	base *directory

	mu    sync.Mutex // guards what follows
	items []item
	hold  budget.Hold // of items
	taken bool
	next  int

	sparing sparing

	// A reply to READDIRPLUS contains many lookups; all are done in one snapshot. Each request has its own context.
	request context.Context
	snap    *sessioncore.Snapshot // used for that request, or nil
}

var _ = (fusefs.NodeOpendirHandler)((*directory)(nil))

// OpendirHandle opens the directory for listing. It returns ESTALE if the directory is gone: the kernel, which may
// remember it for a second, then looks up the path again.
func (d *directory) OpendirHandle(ctx context.Context, _ uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	l := &dirHandle{dir: d.Operations().(dirNode), base: d}
	var attr fuse.Attr
	if err := l.dir.fillAttr(ctx, &attr); err != nil {
		return nil, 0, d.fail("opendir", staleIfGone(err))
	}
	return l, 0, 0
}

// list lists the directory in a snapshot of its session.
func (l *dirHandle) list(ctx context.Context) ([]item, error) {
	snap, err := l.dir.acquire(ctx)
	if err != nil {
		return nil, err
	}
	if snap != nil {
		defer snap.Release()
	}
	return l.dir.list(ctx, snap)
}

func (l *dirHandle) take(ctx context.Context) syscall.Errno {
	if l.taken {
		return 0
	}
	items, err := l.list(ctx)
	if err = cmp.Or(err, ctx.Err()); err != nil { // a list that was not finished would look like a whole one
		return l.base.fail("readdir", staleIfGone(err))
	}
	l.hold = l.base.view.Memory.Hold()
	if err := l.hold.ResizeShown(memoryOf(items)); err != nil {
		return l.base.fail("readdir", err)
	}
	l.items, l.taken, l.next = items, true, 0
	return 0
}

// memoryOf returns how many bytes a list takes, roughly.
func memoryOf(items []item) int64 {
	const perItem = 40 // without its name
	n := int64(len(items)) * perItem
	for _, it := range items {
		n += int64(len(it.name))
	}
	return n
}

func (l *dirHandle) drop() {
	l.items, l.taken = nil, false
	l.hold.Close()
	l.forgetRequest()
}

var _ = (fusefs.FileReaddirenter)((*dirHandle)(nil))

// Readdirent returns the next name.
func (l *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errno := l.take(ctx); errno != 0 {
		return nil, errno
	}
	if l.next >= len(l.items) {
		l.forgetRequest()
		return nil, 0
	}
	it := l.items[l.next]
	l.next++
	return &fuse.DirEntry{Name: it.name, Mode: it.mode, Ino: it.ino, Off: uint64(l.next)}, 0
}

var _ = (fusefs.FileLookuper)((*dirHandle)(nil))

// Lookup answers READDIRPLUS for the name that was returned last.
func (l *dirHandle) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return nil, syscall.ENOENT // nobody would give the node back
	}
	for i := min(l.next, len(l.items)) - 1; i >= 0; i-- {
		if l.items[i].name == name {
			if l.items[i].bare || l.sparing.spare(ctx, l.base.lookups.Load(), i) {
				return nil, syscall.ENOENT // the kernel then looks it up itself
			}
			return l.enter(ctx, l.items[i], out)
		}
	}
	return nil, syscall.ENOENT
}

// enter looks a listed name up, in the snapshot of the request.
func (l *dirHandle) enter(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if l.request != ctx {
		snap, err := l.dir.acquire(ctx)
		if err != nil {
			return nil, l.base.fail("lookup", err, it.name)
		}
		l.forgetRequest()
		l.request, l.snap = ctx, snap
	}
	return l.base.enter(ctx, l.dir, l.snap, it, out)
}

// forgetRequest releases the snapshot of the last request.
func (l *dirHandle) forgetRequest() {
	if l.snap != nil {
		l.snap.Release()
	}
	l.request, l.snap = nil, nil
}

var _ = (fusefs.FileSeekdirer)((*dirHandle)(nil))

// Seekdir goes to an offset that Readdirent returned. Offset 0 makes the list again.
func (l *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off == 0 {
		l.drop()
	}
	if errno := l.take(ctx); errno != 0 {
		return errno
	}
	if off > uint64(len(l.items)) {
		return syscall.EINVAL
	}
	l.next = int(off)
	return 0
}

var _ = (fusefs.FileReleasedirer)((*dirHandle)(nil))

// Releasedir drops the list.
func (l *dirHandle) Releasedir(context.Context, uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}
