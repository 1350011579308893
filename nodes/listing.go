package nodes

import (
	"context"
	"sync"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
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
	// list returns what is in the directory now. release, where not nil, is called when the listing is
	// done with; the listing may look at its items through it until then.
	list() (items []item, release func(), err error)
	// lookupItem answers the lookup of a listed item, without searching for it again.
	lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno)
}

// listing is an open directory: a sorted picture of it, taken when reading begins, and taken anew when
// the reader goes back to the start.
type listing struct {
	dir  lister
	node *node

	mu      sync.Mutex // guards what follows
	items   []item
	release func()
	taken   bool
	next    int
}

// openListing returns a handle on a directory. One that is gone answers ESTALE: the kernel, which may
// remember it for a second, then looks the path up anew.
func (n *node) openListing(dir lister) (fusefs.FileHandle, uint32, syscall.Errno) {
	var attr fuse.Attr
	if err := dir.fillAttr(&attr); err != nil {
		return nil, 0, n.view.fail("opendir", n.path(), staleIfGone(err))
	}
	return &listing{dir: dir, node: n}, 0, 0
}

func (l *listing) take() syscall.Errno {
	if l.taken {
		return 0
	}
	items, release, err := l.dir.list()
	if err != nil {
		return l.node.view.fail("readdir", l.node.path(), staleIfGone(err))
	}
	l.items, l.release, l.taken, l.next = items, release, true, 0
	return 0
}

func (l *listing) drop() {
	if l.release != nil {
		l.release()
	}
	l.items, l.release, l.taken = nil, nil, false
}

var _ = (fusefs.FileReaddirenter)((*listing)(nil))

// Readdirent returns the next name.
func (l *listing) Readdirent(context.Context) (*fuse.DirEntry, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errno := l.take(); errno != 0 {
		return nil, errno
	}
	if l.next >= len(l.items) {
		return nil, 0
	}
	it := l.items[l.next]
	l.next++
	return &fuse.DirEntry{Name: it.name, Mode: it.mode, Ino: it.ino, Off: uint64(l.next)}, 0
}

var _ = (fusefs.FileLookuper)((*listing)(nil))

// Lookup answers READDIRPLUS for the name that was returned last.
func (l *listing) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := min(l.next, len(l.items)) - 1; i >= 0; i-- {
		if l.items[i].name == name {
			return l.dir.lookupItem(ctx, l.items[i], out)
		}
	}
	return nil, syscall.ENOENT
}

var _ = (fusefs.FileSeekdirer)((*listing)(nil))

// Seekdir goes to a place told by an earlier Readdirent; to the start with a new picture.
func (l *listing) Seekdir(_ context.Context, off uint64) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off == 0 {
		l.drop()
	}
	if errno := l.take(); errno != 0 {
		return errno
	}
	if off > uint64(len(l.items)) {
		return syscall.EINVAL
	}
	l.next = int(off)
	return 0
}

var _ = (fusefs.FileReleasedirer)((*listing)(nil))

// Releasedir lets the picture go.
func (l *listing) Releasedir(context.Context, uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
}
