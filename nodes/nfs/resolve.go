package nfs

import (
	"bytes"
	"context"
	"syscall"

	"sessionfs/nodes"
)

// errBadHandle is for a handle that this server has not made. It is no errno.
const errBadHandle = syscall.Errno(10001)

// object returns the object of a handle, and its node.
func (d *Door) object(ctx context.Context, handle []byte) (*object, nodes.Node, syscall.Errno) {
	c, ok := d.objects.check(handle)
	if !ok {
		return nil, nil, errBadHandle
	}
	o := d.objects.get(c.key)
	if o == nil {
		var errno syscall.Errno
		if o, errno = d.resolve(ctx, d.objects.root, &c, 0); errno != 0 {
			return nil, nil, errno
		}
	}
	n, errno := d.node(ctx, o)
	return o, n, errno
}

// node returns the node of an object. It looks the name up where the node is not made yet.
func (d *Door) node(ctx context.Context, o *object) (nodes.Node, syscall.Errno) {
	if n := o.known(); n != nil {
		return n, 0
	}
	look, errno := d.look(ctx, o.parent)
	if errno != 0 {
		return nil, errno
	}
	defer look.Close()
	child, errno := look.Find(ctx, nodes.Named(o.name))
	switch {
	case errno == syscall.ENOENT, errno == 0 && (child.Content != o.content || child.Kind != o.kind):
		return nil, syscall.ESTALE
	case errno != 0:
		return nil, errno
	}
	return o.setNode(&child), 0
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
	if err != nil {
		return nodes.Look{}, nodes.NoName(in, ".", err)
	}
	return look, 0
}

// resolve finds the object of a handle that an earlier server has made, or that the table has forgotten, in the listings
// of its ancestors. level is the depth of dir.
func (d *Door) resolve(ctx context.Context, dir *object, c *claim, level int) (*object, syscall.Errno) {
	if c.depth == 0 || c.depth > maxAncestors+1 {
		return nil, syscall.ESTALE
	}
	isLast := level == c.depth-1
	want := c.id[:]
	if !isLast {
		want = c.prefixes[level*prefixSize:][:prefixSize]
	}
	list, errno := d.list(ctx, dir, false)
	if errno != 0 {
		return nil, staleIfGone(errno)
	}
	look, errno := d.look(ctx, dir)
	if errno != 0 {
		return nil, staleIfGone(errno)
	}
	defer look.Close()
	for i := list.search(want); i < len(list.names) && bytes.HasPrefix(list.names[i].id[:], want); i++ {
		child, errno := look.Find(ctx, list.names[i].item)
		if errno != 0 {
			continue
		}
		if isLast && child.Content != c.content {
			return nil, syscall.ESTALE
		}
		found := d.objects.child(dir, list.names[i].item.Name, &child)
		if found.setNode(&child); isLast {
			return found, 0
		}
		if below, errno := d.resolve(ctx, found, c, level+1); errno == 0 {
			return below, 0
		}
	}
	return nil, syscall.ESTALE
}

func staleIfGone(errno syscall.Errno) syscall.Errno {
	if errno == syscall.ENOENT || errno == syscall.ENOTDIR {
		return syscall.ESTALE
	}
	return errno
}
