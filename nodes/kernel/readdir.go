package kernel

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes"
)

// dirHandle is an open directory: a list of its names, made when reading begins, and made again
// when the reader rewinds it.
type dirHandle struct {
	base *dirInode

	mu     sync.Mutex // guards what follows
	list   nodes.NameList
	listed bool
	next   int

	lookups atomic.Uint32 // how many names were looked up one by one since; counted in long listings only
	sparing sparing

	// A reply to READDIRPLUS contains many lookups; all are done in one look. Each request has its
	// own context.
	request context.Context
	look    nodes.Look // used for that request
}

var _ = (fusefs.NodeOpendirHandler)((*dirInode)(nil))

// OpendirHandle opens the directory for listing. It returns ESTALE if the directory is gone: the
// kernel, which may remember it for a second, then looks up the path again.
func (d *dirInode) OpendirHandle(ctx context.Context, _ uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if errno := nodes.OpenDir(ctx, d.dir); errno != 0 {
		return nil, 0, errno
	}
	return &dirHandle{base: d}, 0, 0
}

// fetch lists the directory, if that is not done yet.
func (l *dirHandle) fetch(ctx context.Context) (errno syscall.Errno) {
	if l.listed {
		return 0
	}
	if l.list, errno = nodes.ListDir(ctx, l.base.dir); errno == 0 {
		l.listed, l.next = true, 0
		if len(l.list.Items) > freeLookups {
			l.base.door().long.add(l)
		}
	}
	return errno
}

func (l *dirHandle) drop() {
	if len(l.list.Items) > freeLookups {
		l.base.door().long.remove(l)
	}
	l.listed = false
	l.list.Close()
	l.forgetRequest()
}

var _ = (fusefs.FileReaddirenter)((*dirHandle)(nil))

// Readdirent returns the next name, with the inode number that a look-up finds.
func (l *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errno := l.fetch(ctx); errno != 0 {
		return nil, errno
	}
	if l.next >= len(l.list.Items) {
		l.forgetRequest()
		return nil, 0
	}
	it := &l.list.Items[l.next]
	l.next++
	id := stableAttr(l.base.StableAttr(), it.Name, it.Kind)
	return &fuse.DirEntry{Name: it.Name, Mode: id.Mode, Ino: id.Ino, Off: uint64(l.next)}, 0
}

var _ = (fusefs.FileLookuper)((*dirHandle)(nil))

// Lookup answers READDIRPLUS for the name that was returned last.
func (l *dirHandle) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return nil, syscall.ENOENT // nobody would give the inode back
	}
	for i := min(l.next, len(l.list.Items)) - 1; i >= 0; i-- {
		it := &l.list.Items[i]
		if it.Name != name {
			continue
		}
		if it.Bare || l.sparing.spare(ctx, l.lookups.Load(), i) {
			return nil, syscall.ENOENT // the kernel then looks it up itself
		}
		return l.enter(ctx, *it, out)
	}
	return nil, syscall.ENOENT
}

// enter looks a listed name up, in the look of the request.
func (l *dirHandle) enter(ctx context.Context, it nodes.Item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if l.request != ctx {
		look, err := nodes.NewLook(ctx, l.base.dir)
		if err != nil {
			return nil, nodes.NoName(l.base.dir, it.Name, err)
		}
		l.forgetRequest()
		l.request, l.look = ctx, look
	}
	return l.base.enter(ctx, &l.look, it, out)
}

// forgetRequest closes the look of the last request.
func (l *dirHandle) forgetRequest() {
	l.look.Close()
	l.request = nil
}

var _ = (fusefs.FileSeekdirer)((*dirHandle)(nil))

// Seekdir goes to an offset that Readdirent returned. Offset 0 makes the list again.
func (l *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off == 0 {
		l.drop()
	}
	if errno := l.fetch(ctx); errno != 0 {
		return errno
	}
	if off > uint64(len(l.list.Items)) {
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

// freeLookups is how many names of a listing always come with their attributes, which saves a round
// trip for each that is opened or stat'ed. For that many it costs some 15 ms more; larger
// directories are rarely read by a shell pattern, whose arguments would be too long for a program.
const freeLookups = 8 << 10

// longListings are the open directories with more names than freeLookups, for which look-ups are
// counted.
type longListings struct {
	some atomic.Bool
	mu   sync.Mutex // guards open
	open []*dirHandle
}

func (o *longListings) add(l *dirHandle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(o.open, l)
	o.some.Store(true)
}

func (o *longListings) remove(l *dirHandle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = slices.DeleteFunc(o.open, func(other *dirHandle) bool { return other == l })
	o.some.Store(len(o.open) > 0)
}

// lookedUp counts a look-up of one name.
func (o *longListings) lookedUp(in *dirInode) {
	if !o.some.Load() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range o.open {
		if l.base == in {
			l.lookups.Add(1)
		}
	}
}

// sparing decides which names of a long listing come with their attributes: the first ones always,
// the others only if lookups are observed, as with ls -l but not with find. The kernel's own
// heuristic (READDIRPLUS_AUTO) returns only names to a shell that expands a pattern, so that each
// following open costs a lookup.
type sparing struct {
	request context.Context // the request for which spares was decided
	spares  bool
	began   bool   // some names came without attributes
	seen    uint32 // lookups counted at that time
	asked   bool   // lookups followed: all other names come with attributes
}

// spare reports whether the name with that number comes without its attributes; lookups is how many
// there were in the directory. Beyond freeLookups the decision is the same for all names of a
// request.
func (s *sparing) spare(request context.Context, lookups uint32, number int) bool {
	if number < freeLookups || s.asked {
		return false
	}
	if s.request == request {
		return s.spares
	}
	s.asked = s.began && lookups != s.seen
	s.request, s.spares, s.began, s.seen = request, !s.asked, true, lookups
	return s.spares
}
