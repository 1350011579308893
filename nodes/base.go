package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is the base of all nodes.
type node struct {
	fusefs.Inode
	view *View
}

// path returns the node's path in the mount, for the log.
func (n *node) path() string { return n.Path(nil) }

// attributer is a node that fills in its attributes, for Lookup, Getattr and Setattr alike.
type attributer interface {
	fusefs.InodeEmbedder
	// fillAttr sets the current mode, owner, size and times.
	fillAttr(ctx context.Context, out *fuse.Attr) error
	// cache returns how long the kernel may remember the name and the attributes.
	cache() cacheRule
}

// cache is that of most files and links.
func (n *node) cache() cacheRule { return cacheNever }

// cacheRule is what the kernel may remember (docs/design.md section 6).
type cacheRule struct{ entry, attr time.Duration }

var (
	// cacheNever: each access asks the server.
	cacheNever = cacheRule{}
	// cacheAttr: each access looks up the name, and the kernel may use the attributes of the answer: a stat is
	// one request, not two. For links to sessions.
	cacheAttr = cacheRule{attr: time.Second}
	// cacheMoment is cacheAttr for files that are read through the kernel's pages and that an open file sees grow.
	cacheMoment = cacheRule{attr: 10 * time.Millisecond}
	// cacheSecond: directories, links whose target cannot change, entries.
	cacheSecond = cacheRule{entry: time.Second, attr: time.Second}
)

// child returns the inode of a child: the one that the kernel knows already, or a new one of the node that make
// returns.
func (n *node) child(ctx context.Context, id fusefs.StableAttr, name string, make func() fusefs.InodeEmbedder) *fusefs.Inode {
	if c := n.GetChild(name); c != nil && c.StableAttr() == id {
		return c
	}
	return n.NewInode(ctx, make(), id)
}

// enter answers a lookup with a child and its attributes.
func (n *node) enter(ctx context.Context, child *fusefs.Inode, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	a, ok := child.Operations().(attributer)
	if !ok {
		return nil, syscall.EIO
	}
	if err := a.fillAttr(ctx, &out.Attr); err != nil {
		return nil, n.view.fail("lookup", n.path(), err)
	}
	setTimeouts(out, a.cache())
	return child, 0
}

// setTimeoutsOf is setTimeouts for a directory.
func (n *node) setTimeoutsOf(dir *fusefs.Inode, out *fuse.EntryOut) {
	if a, ok := dir.Operations().(attributer); ok {
		setTimeouts(out, a.cache())
	}
}

func setTimeouts(out *fuse.EntryOut, c cacheRule) {
	out.SetEntryTimeout(c.entry)
	out.SetAttrTimeout(c.attr)
}

var _ = (fusefs.NodeGetattrer)((*node)(nil))

// Getattr returns the attributes as they are now.
func (n *node) Getattr(ctx context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	a, ok := n.Operations().(attributer)
	if !ok {
		return syscall.EIO
	}
	if err := a.fillAttr(ctx, &out.Attr); err != nil {
		return n.view.fail("stat", n.path(), staleIfGone(err))
	}
	out.SetTimeout(a.cache().attr)
	return 0
}

// Statfs returns the numbers of the backing file system.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	if err := n.view.Statfs(out); err != nil {
		return n.view.fail("statfs", n.path(), err)
	}
	return 0
}

// Setattr is refused, except by control files and leaf, which override it.
func (n *node) Setattr(context.Context, fusefs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return n.denyWrite("setattr", n.path())
}

// denyWrite refuses what would change something that is never changed through the mount; path is what was to be changed.
func (n *node) denyWrite(op, path string) syscall.Errno {
	if n.view.Archived() {
		return n.denyArchived(path)
	}
	return n.denyGenerated(op, path)
}

// directory is the base of all directories. go-fuse allows removals by default; here all changes
// are refused (docs/design.md section 7).
type directory struct{ node }

func (d *directory) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeOpendirHandler)((*directory)(nil))

// OpendirHandle opens the directory for listing.
func (d *directory) OpendirHandle(ctx context.Context, _ uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	switch dir := d.Operations().(type) {
	case lister:
		return d.openListing(ctx, dir)
	case snapshotLister:
		return d.openSnapshotListing(ctx, dir)
	}
	return nil, 0, syscall.EIO
}

func (d *directory) refuse(op, name string) syscall.Errno {
	return d.denyWrite(op, d.path()+"/"+name)
}

// Create is refused.
func (d *directory) Create(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, d.refuse("create", name)
}

// Mkdir is refused.
func (d *directory) Mkdir(_ context.Context, name string, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.refuse("mkdir", name)
}

// Mknod is refused.
func (d *directory) Mknod(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.refuse("mknod", name)
}

// Symlink is refused.
func (d *directory) Symlink(_ context.Context, _, name string, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.refuse("symlink", name)
}

// Link is refused.
func (d *directory) Link(_ context.Context, _ fusefs.InodeEmbedder, name string, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.refuse("link", name)
}

// Unlink is refused.
func (d *directory) Unlink(_ context.Context, name string) syscall.Errno {
	return d.refuse("unlink", name)
}

// Rmdir is refused.
func (d *directory) Rmdir(_ context.Context, name string) syscall.Errno {
	return d.refuse("rmdir", name)
}

// Rename is refused.
func (d *directory) Rename(_ context.Context, name string, _ fusefs.InodeEmbedder, _ string, _ uint32) syscall.Errno {
	return d.refuse("rename", name)
}

// Fsync has nothing to do: nothing is written.
func (d *directory) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno { return 0 }
