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

// item is a name in a listing. number is for the directory's own use: an entry's number.
type item struct {
	name   string
	mode   uint32 // file type bits
	ino    uint64
	number int32
}

// lister is a directory that can be listed.
type lister interface {
	attributer
	// list returns what is in the directory now.
	list(ctx context.Context) ([]item, error)
	// lookupItem looks up a listed item, without searching for it again.
	lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno)
}

// snapshotLister is a directory whose items are all found in a snapshot of one session.
type snapshotLister interface {
	attributer
	// acquire returns the current snapshot; the caller must release it.
	acquire(ctx context.Context) (*sessioncore.Snapshot, error)
	// listIn is list in a snapshot.
	listIn(ctx context.Context, snap *sessioncore.Snapshot) ([]item, error)
	// lookupIn is lookupItem in a snapshot, which may be newer than the one that was listed.
	lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno)
}

// listsNothing is embedded in directories whose names can only be looked up.
type listsNothing struct{}

func (listsNothing) list(_ context.Context) ([]item, error) { return nil, nil }

func (listsNothing) lookupItem(context.Context, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, syscall.ENOENT
}

// newItem is a name in a listing of n, of the inode that a lookup finds.
func (n *node) newItem(k kind, name string, mode uint32) item {
	id := stableAttr(n.StableAttr(), k, name, mode)
	return item{name: name, mode: id.Mode, ino: id.Ino}
}

// dirHandle is an open directory: a sorted list of its names, made when reading begins, and made again when
// the reader rewinds it.
type dirHandle struct {
	dir    attributer
	node   *node
	list   func(context.Context) ([]item, error)
	lookup func(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) // called under mu

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

// openListing returns a handle for a directory, or ESTALE if the directory is gone: the kernel, which may
// remember it for a second, then looks up the path again.
func (n *node) openListing(ctx context.Context, dir lister) (fusefs.FileHandle, uint32, syscall.Errno) {
	return n.openListed(ctx, &dirHandle{dir: dir, node: n, list: dir.list, lookup: dir.lookupItem})
}

// openSnapshotListing is openListing for what is found in one session.
func (n *node) openSnapshotListing(ctx context.Context, dir snapshotLister) (fusefs.FileHandle, uint32, syscall.Errno) {
	l := &dirHandle{dir: dir, node: n}
	l.list = func(ctx context.Context) ([]item, error) {
		snap, err := dir.acquire(ctx)
		if err != nil {
			return nil, err
		}
		defer snap.Release()
		return dir.listIn(ctx, snap)
	}
	l.lookup = func(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
		return l.lookupInSession(ctx, dir, it, out)
	}
	return n.openListed(ctx, l)
}

func (n *node) openListed(ctx context.Context, l *dirHandle) (fusefs.FileHandle, uint32, syscall.Errno) {
	var attr fuse.Attr
	err := l.dir.fillAttr(ctx, &attr)
	if err != nil {
		return nil, 0, n.view.fail("opendir", n.path(), staleIfGone(err))
	}
	return l, 0, 0
}

func (l *dirHandle) take(ctx context.Context) syscall.Errno {
	if l.taken {
		return 0
	}
	items, err := l.list(ctx)
	if err = cmp.Or(err, ctx.Err()); err != nil { // a list that was not finished would look like a whole one
		return l.node.view.fail("readdir", l.node.path(), staleIfGone(err))
	}
	l.hold = l.node.view.Memory.Hold()
	if err := l.hold.ResizeShown(memoryOf(items)); err != nil {
		return l.node.view.fail("readdir", l.node.path(), err)
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
			if l.sparing.spare(ctx, l.dir, i) {
				return nil, syscall.ENOENT // the kernel then looks it up itself
			}
			return l.lookup(ctx, l.items[i], out)
		}
	}
	return nil, syscall.ENOENT
}

// lookupInSession acquires the session once for each request.
func (l *dirHandle) lookupInSession(ctx context.Context, dir snapshotLister, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if l.snap == nil || l.request != ctx {
		snap, err := dir.acquire(ctx)
		if err != nil {
			return nil, l.node.view.fail("lookup", l.node.path()+"/"+it.name, err)
		}
		l.forgetRequest()
		l.request, l.snap = ctx, snap
	}
	return dir.lookupIn(ctx, l.snap, it, out)
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
