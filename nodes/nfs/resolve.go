package nfs

import (
	"bytes"
	"context"
	"syscall"

	"sessionfs/nodes"
)

// object returns the object of a handle that is ours, and its node.
func (d *Door) object(ctx context.Context, handle []byte) (o *object, n nodes.Node, errno syscall.Errno) {
	if o = d.objects.get(keyOf(handle)); o == nil {
		if o, errno = d.resolve(ctx, d.objects.root, handle); errno != 0 {
			return nil, nil, staleIfGone(errno)
		}
	}
	n, errno = d.node(ctx, o)
	return o, n, staleIfGone(errno)
}

// staleIfGone makes the errno of a handle that leads nowhere ESTALE.
func staleIfGone(errno syscall.Errno) syscall.Errno {
	if errno == syscall.ENOENT || errno == syscall.ENOTDIR {
		return syscall.ESTALE
	}
	return errno
}

// node returns the node of an object. It looks the name up where the node is not made yet.
func (d *Door) node(ctx context.Context, o *object) (nodes.Node, syscall.Errno) {
	if n := o.makeNode(nil); n != nil {
		return n, 0
	}
	look, errno := d.look(ctx, o.parent)
	if errno != 0 {
		return nil, errno
	}
	defer look.Close()
	child, errno := look.Find(ctx, nodes.Named(o.name))
	if errno == 0 && (child.Content != o.content || child.Kind != o.kind) {
		errno = syscall.ESTALE
	}
	if errno != 0 {
		return nil, errno
	}
	return o.makeNode(&child), 0
}

// look returns the state of a directory now.
func (d *Door) look(ctx context.Context, dir *object) (nodes.Look, syscall.Errno) {
	n, errno := d.node(ctx, dir)
	if errno != 0 {
		return nodes.Look{}, errno
	}
	in, ok := n.(nodes.Dir)
	if !ok {
		return nodes.Look{}, syscall.ENOTDIR
	}
	look, err := nodes.NewLook(ctx, in)
	return look, nodes.Fail(in, "", "lookup", err)
}

// find finds a name in a look at a directory.
func (d *Door) find(
	ctx context.Context, look *nodes.Look, dir *object, name string,
) (*object, nodes.Child, syscall.Errno) {
	child, errno := look.Find(ctx, nodes.Named(name))
	if errno != 0 {
		return nil, child, errno
	}
	return d.objects.child(dir, name, &child), child, 0
}

// resolve finds the object of a handle that an earlier server has made, or that the table has
// forgotten, in the listings of its ancestors, of which dir is one.
func (d *Door) resolve(ctx context.Context, dir *object, handle []byte) (*object, syscall.Errno) {
	depth, want := int(handle[1]), keyOf(handle)
	if depth == 0 || depth > maxAncestors+1 {
		return nil, syscall.ESTALE
	}
	isLast, prefix := dir.depth+1 == depth, want.id[:]
	if !isLast {
		prefix = handle[prefixesAt+prefixSize*dir.depth:][:prefixSize]
	}
	list, errno := d.list(ctx, dir, false)
	if errno != 0 {
		return nil, errno
	}
	defer d.lists.release(list)
	look, errno := d.look(ctx, dir)
	if errno != 0 {
		return nil, errno
	}
	defer look.Close()
	names := list.value.names
	for i := list.value.search(prefix); i < len(names) && bytes.HasPrefix(names[i].id[:], prefix); i++ {
		found, _, errno := d.find(ctx, &look, dir, names[i].item.Name)
		if errno == 0 && !isLast {
			found, errno = d.resolve(ctx, found, handle)
		}
		if errno == 0 && found.key == want {
			return found, 0
		}
	}
	return nil, syscall.ESTALE
}
