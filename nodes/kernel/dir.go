package kernel

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes"
)

// dirInode is the inode of a directory. It refuses all changes (docs/design.md section 7), except
// those of a nodes.LinkDir; go-fuse allows removals by default.
type dirInode struct {
	inode
	dir nodes.Dir
}

func (d *dirInode) node() nodes.Node { return d.dir }

var _ = (fusefs.NodeLookuper)((*dirInode)(nil))

// Lookup finds a name.
func (d *dirInode) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	door := d.door()
	door.long.countLookup(d)
	found, errno := d.lookUp(ctx, name, out)
	if errno == syscall.ENOENT {
		door.inodes.addMiss(d.EmbeddedInode(), name)
	}
	return found, errno
}

func (d *dirInode) lookUp(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	look, err := nodes.NewLook(ctx, d.dir)
	if err != nil {
		return nil, nodes.NoName(d.dir, name, err)
	}
	defer look.Close()
	return d.enter(ctx, &look, nodes.Named(name), out)
}

// enter answers the lookup of a name with a child and its attributes.
func (d *dirInode) enter(
	ctx context.Context, look *nodes.Look, it nodes.Item, out *fuse.EntryOut,
) (*fusefs.Inode, syscall.Errno) {
	child, errno := look.Find(ctx, it)
	if errno != 0 {
		return nil, errno
	}
	found := d.inodeOf(ctx, it.Name, &child)
	n := nodeOf(found)
	a, errno := look.Attr(ctx, it.Name, &child, n)
	if errno != 0 {
		return nil, errno
	}
	fill(&out.Attr, &a)
	rule := ruleOf(n)
	out.SetEntryTimeout(rule.entry)
	out.SetAttrTimeout(rule.attr)
	return found, 0
}

var _ = (fusefs.NodeSymlinker)((*dirInode)(nil))

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
	if errno := links.Symlink(ctx, target, name); errno != 0 {
		return nil, errno
	}
	return d.Lookup(ctx, name, out)
}

var _ = (fusefs.NodeUnlinker)((*dirInode)(nil))

// Unlink removes a link of a nodes.LinkDir.
func (d *dirInode) Unlink(ctx context.Context, name string) syscall.Errno {
	if links, ok := d.dir.(nodes.LinkDir); ok {
		return links.Remove(ctx, name)
	}
	return nodes.DenyName(d.dir, name, "unlink")
}

var _ = (fusefs.NodeRenamer)((*dirInode)(nil))

// Rename renames a link in a nodes.LinkDir. No signal interrupts it, as for Symlink.
func (d *dirInode) Rename(
	ctx context.Context, name string, newParent fusefs.InodeEmbedder, newName string, flags uint32,
) syscall.Errno {
	if links, ok := d.dir.(nodes.LinkDir); ok && newParent.EmbeddedInode() == d.EmbeddedInode() {
		return links.Rename(context.WithoutCancel(ctx), name, newName, flags)
	}
	return nodes.DenyName(d.dir, name, "rename")
}

var _ = (fusefs.NodeCreater)((*dirInode)(nil))

// Create is refused.
func (d *dirInode) Create(
	_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut,
) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return nil, nil, 0, nodes.DenyName(d.dir, name, "create")
}

var _ = (fusefs.NodeMkdirer)((*dirInode)(nil))

// Mkdir is refused.
func (d *dirInode) Mkdir(_ context.Context, name string, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, nodes.DenyName(d.dir, name, "mkdir")
}

var _ = (fusefs.NodeMknoder)((*dirInode)(nil))

// Mknod is refused.
func (d *dirInode) Mknod(_ context.Context, name string, _, _ uint32, _ *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return nil, nodes.DenyName(d.dir, name, "mknod")
}

var _ = (fusefs.NodeLinker)((*dirInode)(nil))

// Link is refused.
func (d *dirInode) Link(
	_ context.Context, _ fusefs.InodeEmbedder, name string, _ *fuse.EntryOut,
) (*fusefs.Inode, syscall.Errno) {
	return nil, nodes.DenyName(d.dir, name, "link")
}

var _ = (fusefs.NodeRmdirer)((*dirInode)(nil))

// Rmdir is refused.
func (d *dirInode) Rmdir(_ context.Context, name string) syscall.Errno {
	return nodes.DenyName(d.dir, name, "rmdir")
}

var _ = (fusefs.NodeFsyncer)((*dirInode)(nil))

// Fsync does nothing, as nothing is written.
func (d *dirInode) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno { return 0 }
