package nodes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// directory is the base of all directories: look-ups and listings; all changes are refused (node.go).
type directory struct {
	node
	lookups atomic.Uint32 // how many names were looked up one by one; see sparing
}

func newDirectory(view *View) directory { return directory{node: node{view: view}} }

func (d *directory) cache() cacheRule { return cacheSecond }

// dirNode is every directory: what it has to say of itself; the rest is done by its base.
type dirNode interface {
	attributer
	// acquire returns the state of a session in which the names are found, nil if they are not found in one. The caller
	// must release it.
	acquire(ctx context.Context) (*sessioncore.Snapshot, error)
	// list returns what is in the directory now.
	list(ctx context.Context, snap *sessioncore.Snapshot) ([]item, error)
	// find finds what a name stands for. The item is one of list, of this snapshot or an older one, or is unnumbered. If the
	// attributes are known already, it sets them.
	find(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error)
	// noted is what last-error calls a look-up that fails; "" for a directory whose names nobody makes up.
	noted() string
}

func (d *directory) acquire(context.Context) (*sessioncore.Snapshot, error) { return nil, nil }

// list lists nothing: names can be looked up only.
func (d *directory) list(context.Context, *sessioncore.Snapshot) ([]item, error) { return nil, nil }

func (d *directory) noted() string { return "" }

// child is what a name in a directory stands for.
type child struct {
	mode uint32 // file type bits
	// content identifies the content of a node that stands for one only; else it is 0, or other.
	content uint64
	// make makes the node, if the kernel does not know it.
	make func() fusefs.InodeEmbedder
}

// other is the content of what may have a name after something else of the same type had it.
const other = 1

var _ = (fusefs.NodeLookuper)((*directory)(nil))

// Lookup finds a name.
func (d *directory) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	d.lookups.Add(1)
	inode, errno := d.lookUp(ctx, name, out)
	if errno == syscall.ENOENT {
		d.view.whole().crowd.missed(d.EmbeddedInode(), name)
	}
	return inode, errno
}

func (d *directory) lookUp(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	dir := d.Operations().(dirNode)
	snap, err := dir.acquire(ctx)
	if err != nil {
		return nil, d.noName(dir, name, err)
	}
	if snap != nil {
		defer snap.Release()
	}
	return d.enter(ctx, dir, snap, item{name: name, number: unnumbered}, out)
}

// enter answers the look-up of a name with a child and its attributes.
func (d *directory) enter(ctx context.Context, dir dirNode, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	found, err := dir.find(ctx, snap, it, &out.Attr)
	if snap != nil && errors.Is(err, sessioncore.ErrNotFound) {
		err = cmp.Or(snap.Confirm(ctx), err) // where that fails, the kernel looks again
	}
	if err != nil {
		return nil, d.noName(dir, it.name, err)
	}
	inode := d.inodeOf(ctx, it.name, found)
	a := inode.Operations().(attributer)
	if out.Attr.Mode == 0 {
		if err := a.fillAttr(ctx, &out.Attr); err != nil {
			return nil, d.noName(dir, it.name, err)
		}
	}
	if what := dir.noted(); what != "" {
		d.view.found(what)
	}
	out.SetEntryTimeout(a.cache().entry)
	out.SetAttrTimeout(a.cache().attr)
	return inode, 0
}

// noName returns the errno of a look-up that failed. Programs look for .git and the like in every directory; that is not
// noted.
func (d *directory) noName(dir dirNode, name string, err error) syscall.Errno {
	if what := dir.noted(); what != "" && name[0] != '.' {
		return d.view.refuseLookup(what, name, d.path(name), err)
	}
	return d.fail("lookup", err, name)
}

// follower is a node whose open handles may share a version; see line.
type follower interface {
	// follows reports whether its handles share one.
	follows() bool
	// standsFor reports whether the node shows what its name does now; content is that of child.
	standsFor(ctx context.Context, content uint64) bool
}

// successors counts followers, to give each its own identity.
var successors atomic.Uint64

// inodeOf returns the inode of a child: the one that the kernel knows already, or a new one. If the open handles of a
// follower show something else than the name does now, the name is given to a new node, which is another file to the
// kernel. The handles may hold the only reference to the old node, so a new node never has the identity of an earlier one.
func (d *directory) inodeOf(ctx context.Context, name string, c child) *fusefs.Inode {
	id := stableAttr(d.StableAttr(), name, c.mode)
	id.Gen ^= c.content
	if known := d.GetChild(name); known != nil && known.StableAttr().Ino == id.Ino {
		if f, ok := known.Operations().(follower); ok && f.follows() {
			if f.standsFor(ctx, c.content) {
				return known
			}
		} else if known.StableAttr() == id {
			return known
		}
	}
	made := c.make()
	if f, ok := made.(follower); ok && f.follows() {
		id.Gen ^= successors.Add(1) << 20
	}
	return d.NewInode(ctx, made, id)
}

// NameIn is a fixed name in a directory that is made from a D.
type NameIn[D any] struct {
	Name string
	Mode uint32 // file type bits
	Make func(D) fusefs.InodeEmbedder
	// Is reports whether the name is there; nil means that it is listed.
	Is func(D, context.Context) Presence
}

// Name is a fixed name outside of the sessions.
type Name = NameIn[*View]

// Presence says whether there is a name in a directory.
type Presence int

const (
	// Absent names are not found.
	Absent Presence = iota
	// Hidden names are found, but not listed: what is there may be so much work that no crawler may start it.
	Hidden
	// Listed names are found and listed.
	Listed
)

// presentIf returns Listed for what is there.
func presentIf(there bool) Presence {
	if there {
		return Listed
	}
	return Absent
}

// fixedNames are names of a directory, in order: the one list that drives look-ups and listings.
type fixedNames[D any] []NameIn[D]

func (n *NameIn[D]) is(ctx context.Context, d D) Presence {
	if n.Is == nil {
		return Listed
	}
	return n.Is(d, ctx)
}

func (f fixedNames[D]) has(name string) bool {
	return slices.ContainsFunc(f, func(n NameIn[D]) bool { return n.Name == name })
}

// find finds a name. What was listed is not looked for again.
func (f fixedNames[D]) find(ctx context.Context, d D, it item) (child, error) {
	for i := range f {
		n := &f[i]
		if n.Name != it.name {
			continue
		}
		if it.number == unnumbered && n.is(ctx, d) == Absent {
			return child{}, cmp.Or(ctx.Err(), error(syscall.ENOENT))
		}
		return child{mode: n.Mode, make: func() fusefs.InodeEmbedder { return n.Make(d) }}, nil
	}
	return child{}, syscall.ENOENT
}

// list lists the names in a directory.
func (f fixedNames[D]) list(ctx context.Context, d D, in *node) []item {
	items := make([]item, 0, len(f))
	for i := range f {
		if n := &f[i]; n.is(ctx, d) == Listed {
			it := in.newItem(n.Name, n.Mode)
			it.bare = slowFiles[n.Name]
			items = append(items, it)
		}
	}
	return items
}

// slowFiles are generated files whose size may take reading much of the session, or looking at all sessions. A listing
// leaves out their attributes; the kernel then looks up those that are needed.
var slowFiles = map[string]bool{"context.json": true, "index.jsonl": true, "problems.jsonl": true, "results.tsv": true, "transcript.md": true, "usage.json": true}

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
func (n *node) newItem(name string, mode uint32) item {
	id := stableAttr(n.StableAttr(), name, mode)
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
	if err == nil && snap != nil && errors.Is(snap.Confirm(ctx), storage.ErrStale) {
		snap.Release()
		snap, err = l.dir.acquire(ctx)
	}
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

// freeLookups is how many names of a listing always come with their attributes, which saves a round trip for each that
// is opened or stat'ed. For that many it costs some 15 ms more; larger directories are
// rarely read by a shell pattern, whose arguments would be too long for a program.
const freeLookups = 8 << 10

// sparing decides which names of a long listing come with their attributes: the first ones always, the others only
// if lookups are observed, as with ls -l but not with find. The kernel's own heuristic
// (READDIRPLUS_AUTO) returns only names to a shell that expands a pattern, so that each following open
// costs a lookup.
type sparing struct {
	request context.Context // the request for which spares was decided
	spares  bool
	began   bool   // some names came without attributes
	seen    uint32 // lookups counted at that time
	asked   bool   // lookups followed: all other names come with attributes
}

// spare reports whether the name with that number comes without its attributes; lookups is how many there were in the
// directory. Beyond freeLookups the decision is the same for all names of a request.
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
