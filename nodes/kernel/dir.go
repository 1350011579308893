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

// go-fuse finds the requests that are answered by these interfaces.
var (
	_ fusefs.NodeLookuper       = (*dirInode)(nil)
	_ fusefs.NodeSymlinker      = (*dirInode)(nil)
	_ fusefs.NodeUnlinker       = (*dirInode)(nil)
	_ fusefs.NodeRenamer        = (*dirInode)(nil)
	_ fusefs.NodeCreater        = (*dirInode)(nil)
	_ fusefs.NodeMkdirer        = (*dirInode)(nil)
	_ fusefs.NodeMknoder        = (*dirInode)(nil)
	_ fusefs.NodeLinker         = (*dirInode)(nil)
	_ fusefs.NodeRmdirer        = (*dirInode)(nil)
	_ fusefs.NodeFsyncer        = (*dirInode)(nil)
	_ fusefs.NodeOpendirHandler = (*dirInode)(nil)
	_ fusefs.FileReaddirenter   = (*dirHandle)(nil)
	_ fusefs.FileLookuper       = (*dirHandle)(nil)
	_ fusefs.FileSeekdirer      = (*dirHandle)(nil)
	_ fusefs.FileReleasedirer   = (*dirHandle)(nil)
)

// dirInode is the inode of a directory. It refuses all changes (docs/design.md section 7), except
// those of a nodes.LinkDir, with a hint in last-error; go-fuse allows removals by default.
type dirInode struct {
	inode
	dir nodes.Dir
}

func (d *dirInode) node() nodes.Node { return d.dir }

// Lookup answers LOOKUP.
func (d *dirInode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	door := d.door()
	door.countRequest()
	door.long.countLookup(d)
	found, errno := d.lookUp(ctx, name, out)
	if errno == syscall.ENOENT {
		door.inodes.addMiss(d.EmbeddedInode(), name)
	}
	return found, errno
}

// lookUp answers the lookup of a name in the current state of the directory.
func (d *dirInode) lookUp(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	state, err := nodes.NewDirState(ctx, d.dir)
	if err != nil {
		return nil, nodes.NoName(d.dir, name, err)
	}
	defer state.Close()
	return d.enter(ctx, &state, nodes.Named(name), out)
}

// enter answers the lookup of an item with the inode of its child, and fills out with the attributes and
// the times of the cache rule.
func (d *dirInode) enter(
	ctx context.Context, state *nodes.DirState, it nodes.Item, out *fuse.EntryOut,
) (*fusefs.Inode, syscall.Errno) {
	child, errno := state.Find(ctx, it)
	if errno != 0 {
		return nil, errno
	}
	found := d.inodeOf(ctx, it.Name, &child)
	n := nodeOf(found)
	a, errno := state.Attr(ctx, it.Name, &child, n)
	if errno != 0 {
		return nil, errno
	}
	fill(&out.Attr, &a)
	rule := ruleOf(n)
	out.SetEntryTimeout(rule.entry)
	out.SetAttrTimeout(rule.attr)
	return found, 0
}

// Symlink makes a link in a nodes.LinkDir. No signal interrupts it: a program that repeats the call
// after EINTR would find its own link.
func (d *dirInode) Symlink(
	ctx context.Context, target, name string, out *fuse.EntryOut,
) (*fusefs.Inode, syscall.Errno) {
	links, ok := d.dir.(nodes.LinkDir)
	if !ok {
		return nil, nodes.DenyName(d.dir, name, "symlink")
	}
	ctx = context.WithoutCancel(ctx)
	errno := links.Symlink(ctx, target, name)
	if errno != 0 {
		return nil, errno
	}
	return d.Lookup(ctx, name, out)
}

// Unlink removes a link of a nodes.LinkDir.
func (d *dirInode) Unlink(ctx context.Context, name string) syscall.Errno {
	links, ok := d.dir.(nodes.LinkDir)
	if ok {
		return links.Remove(ctx, name)
	}
	return nodes.DenyName(d.dir, name, "unlink")
}

// Rename renames a link in a nodes.LinkDir. No signal interrupts it, as for Symlink.
func (d *dirInode) Rename(
	ctx context.Context, name string, newParent fusefs.InodeEmbedder, newName string, flags uint32,
) syscall.Errno {
	links, ok := d.dir.(nodes.LinkDir)
	if ok && newParent.EmbeddedInode() == d.EmbeddedInode() {
		return links.Rename(context.WithoutCancel(ctx), name, newName, flags)
	}
	return nodes.DenyName(d.dir, name, "rename")
}

// Create is refused, as are the requests below it.
func (d *dirInode) Create(
	_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut,
) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, nodes.DenyName(d.dir, name, "create")
}

func (d *dirInode) Mkdir(_ context.Context, name string, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, nodes.DenyName(d.dir, name, "mkdir")
}

func (d *dirInode) Mknod(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, nodes.DenyName(d.dir, name, "mknod")
}

// Link is refused, as no file has two names.
func (d *dirInode) Link(
	_ context.Context, _ fusefs.InodeEmbedder, name string, _ *fuse.EntryOut,
) (*fusefs.Inode, syscall.Errno) {
	return nil, nodes.DenyName(d.dir, name, "link")
}

func (d *dirInode) Rmdir(_ context.Context, name string) syscall.Errno {
	return nodes.DenyName(d.dir, name, "rmdir")
}

// Fsync does nothing, as nothing is written.
func (d *dirInode) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno { return 0 }

// dirHandle is an open directory. Its list of names is made by the first read and after a rewind.
type dirHandle struct {
	base *dirInode

	mu     sync.Mutex // guards the fields below
	list   nodes.NameList
	listed bool // list is made
	next   int  // the index in list of the next name to return

	lookups    atomic.Uint32 // lookups of single names since then; counted for long listings only
	attrPolicy attrPolicy

	// A reply to READDIRPLUS contains many lookups, which share one DirState. Each request has its own
	// context.
	request context.Context
	state   nodes.DirState // of that request
}

// OpendirHandle opens the directory for listing. It returns ESTALE if the directory is gone, so
// that the kernel, which may cache it for a second, looks up the path once more.
func (d *dirInode) OpendirHandle(ctx context.Context, _ uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	d.door().countRequest()
	errno := nodes.OpenDir(ctx, d.dir)
	if errno != 0 {
		return nil, 0, errno
	}
	d.door().open.Add(1)
	return &dirHandle{base: d}, 0, 0
}

// fetch lists the directory unless it is listed, and begins at the first name. Callers must hold l.mu.
func (l *dirHandle) fetch(ctx context.Context) (errno syscall.Errno) {
	if l.listed {
		return 0
	}
	l.list, errno = nodes.ListDir(ctx, l.base.dir)
	if errno != 0 {
		return errno
	}
	l.listed = true
	l.next = 0
	if len(l.list.Items) > freeLookups {
		l.base.door().long.add(l)
	}
	return 0
}

// drop forgets the listing. Callers must hold l.mu.
func (l *dirHandle) drop() {
	if len(l.list.Items) > freeLookups {
		l.base.door().long.remove(l)
	}
	l.listed = false
	l.list.Close()
	l.forgetRequest()
}

// Readdirent returns the next name, with the inode number of a lookup; nil at the end of the list.
func (l *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	errno := l.fetch(ctx)
	if errno != 0 {
		return nil, errno
	}
	if l.next >= len(l.list.Items) {
		l.forgetRequest()
		return nil, 0
	}
	it := &l.list.Items[l.next]
	l.next++
	id := stableAttr(l.base.StableAttr(), it.Name, it.Kind)
	return &fuse.DirEntry{
		Name: it.Name,
		Mode: id.Mode,
		Ino:  id.Ino,
		Off:  uint64(l.next),
	}, 0
}

// Lookup answers READDIRPLUS for the last returned name.
func (l *dirHandle) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		return nil, syscall.ENOENT // no caller would release the inode
	}
	// The name is the last one before next, but for names that did not fit into an earlier reply.
	for i := min(l.next, len(l.list.Items)) - 1; i >= 0; i-- {
		it := &l.list.Items[i]
		if it.Name != name {
			continue
		}
		if it.Bare || l.attrPolicy.omits(ctx, l.lookups.Load(), i) {
			return nil, syscall.ENOENT // the kernel then looks the name up itself
		}
		return l.enter(ctx, *it, out)
	}
	return nil, syscall.ENOENT
}

// enter looks up a listed name in the DirState of the request, which the first name of a request makes. Callers
// must hold l.mu.
func (l *dirHandle) enter(ctx context.Context, it nodes.Item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if l.request != ctx {
		state, err := nodes.NewDirState(ctx, l.base.dir)
		if err != nil {
			return nil, nodes.NoName(l.base.dir, it.Name, err)
		}
		l.forgetRequest()
		l.request = ctx
		l.state = state
	}
	return l.base.enter(ctx, &l.state, it, out)
}

// forgetRequest closes the DirState of the last request, if there is one. Callers must hold l.mu.
func (l *dirHandle) forgetRequest() {
	l.state.Close()
	l.request = nil
}

// Seekdir sets the position to an offset of Readdirent. Offset 0 remakes the list.
func (l *dirHandle) Seekdir(ctx context.Context, off uint64) syscall.Errno {
	l.mu.Lock()
	defer l.mu.Unlock()
	if off == 0 {
		l.drop()
	}
	errno := l.fetch(ctx)
	if errno != 0 {
		return errno
	}
	if off > uint64(len(l.list.Items)) {
		return syscall.EINVAL
	}
	l.next = int(off)
	return 0
}

// Releasedir drops the list.
func (l *dirHandle) Releasedir(context.Context, uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop()
	l.base.door().open.Add(-1)
}

// freeLookups is the number of names of a listing that always come with attributes, which saves a
// round trip for each that is opened or stat'ed, at a cost of some 15 ms. Shell patterns rarely
// match more, as their arguments would be too long for a program.
const freeLookups = 8 << 10

// longListings are the open directories with more than freeLookups names. Lookups are counted.
type longListings struct {
	any  atomic.Bool
	mu   sync.Mutex // guards open
	open []*dirHandle
}

// add adds an open listing.
func (o *longListings) add(l *dirHandle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = append(o.open, l)
	o.any.Store(true)
}

// remove removes a listing that is no longer open.
func (o *longListings) remove(l *dirHandle) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = slices.DeleteFunc(o.open, func(other *dirHandle) bool {
		return other == l
	})
	o.any.Store(len(o.open) > 0)
}

// countLookup counts a lookup of one name in a directory for each open listing of it.
func (o *longListings) countLookup(in *dirInode) {
	if !o.any.Load() {
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

// attrPolicy decides which names of a long listing come with attributes: the first ones always, the
// others only if lookups follow, as with ls -l but not with find. The kernel's own heuristic
// (READDIRPLUS_AUTO) returns only names to a shell that expands a pattern, so that each following
// open costs a lookup.
type attrPolicy struct {
	request  context.Context // the request that omitAttr was decided for
	omitAttr bool
	omitted  bool   // some names came without attributes
	lookups  uint32 // lookups counted at that time
	wanted   bool   // lookups followed: all other names come with attributes
}

// omits reports whether the name with that number comes without attributes; lookups is their number
// in the directory. Beyond freeLookups the decision is the same for all names of a request.
func (p *attrPolicy) omits(request context.Context, lookups uint32, number int) bool {
	if number < freeLookups || p.wanted {
		return false
	}
	if p.request == request {
		return p.omitAttr
	}
	haveFollowed := lookups != p.lookups
	p.wanted = p.omitted && haveFollowed
	p.request = request
	p.omitAttr = !p.wanted
	p.omitted = true
	p.lookups = lookups
	return p.omitAttr
}
