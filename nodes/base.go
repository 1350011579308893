package nodes

import (
	"context"
	"strings"
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

// path returns the path in the mount of the node, or of a name in it.
func (n *node) path(name ...string) string {
	return strings.Join(append([]string{n.Path(nil)}, name...), "/")
}

// attributer is every node: it fills in its attributes, for Lookup, Getattr and Setattr alike.
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

var _ = (fusefs.NodeGetattrer)((*node)(nil))

// Getattr returns the attributes as they are now.
func (n *node) Getattr(ctx context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	a := n.Operations().(attributer)
	if err := a.fillAttr(ctx, &out.Attr); err != nil {
		return n.fail("stat", staleIfGone(err))
	}
	out.SetTimeout(a.cache().attr)
	return 0
}

// Statfs returns the numbers of the backing file system.
func (n *node) Statfs(_ context.Context, out *fuse.StatfsOut) syscall.Errno {
	if err := n.view.Statfs(out); err != nil {
		return n.fail("statfs", err)
	}
	return 0
}

// Setattr is refused, except by control files and leaf, which override it.
func (n *node) Setattr(context.Context, fusefs.FileHandle, *fuse.SetAttrIn, *fuse.AttrOut) syscall.Errno {
	return n.denyWrite("setattr")
}

// go-fuse allows removals by default; in directories all changes are refused (docs/design.md section 7).

// Create is refused.
func (d *directory) Create(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, d.denyWrite("create", name)
}

// Mkdir is refused.
func (d *directory) Mkdir(_ context.Context, name string, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("mkdir", name)
}

// Mknod is refused.
func (d *directory) Mknod(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("mknod", name)
}

// Symlink is refused.
func (d *directory) Symlink(_ context.Context, _, name string, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("symlink", name)
}

// Link is refused.
func (d *directory) Link(_ context.Context, _ fusefs.InodeEmbedder, name string, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, d.denyWrite("link", name)
}

// Unlink is refused.
func (d *directory) Unlink(_ context.Context, name string) syscall.Errno {
	return d.denyWrite("unlink", name)
}

// Rmdir is refused.
func (d *directory) Rmdir(_ context.Context, name string) syscall.Errno {
	return d.denyWrite("rmdir", name)
}

// Rename is refused.
func (d *directory) Rename(_ context.Context, name string, _ fusefs.InodeEmbedder, _ string, _ uint32) syscall.Errno {
	return d.denyWrite("rename", name)
}

// Fsync has nothing to do: nothing is written.
func (d *directory) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno { return 0 }
