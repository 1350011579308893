package nfs

import (
	"context"
	"syscall"

	"sessionfs/nodes"
)

// name decodes a directory and a name in it.
func (r *request) name() (*object, nodes.Dir, string, status) {
	o, n, st := r.object()
	name := r.in.text()
	if st != nfsOK {
		return nil, nil, name, st
	}
	dir, ok := n.(nodes.Dir)
	switch {
	case r.in.bad:
		return nil, nil, name, nfsInvalid
	case !ok:
		return nil, nil, name, statusOf(syscall.ENOTDIR)
	case len(name) > 255:
		return nil, nil, name, statusOf(syscall.ENAMETOOLONG)
	case name == "":
		return nil, nil, name, nfsInvalid
	}
	return o, dir, name, nfsOK
}

// lookup answers LOOKUP.
func (r *request) lookup() status {
	dir, in, name, st := r.name()
	if st != nfsOK {
		return st
	}
	if name == "." || name == ".." {
		if name == ".." {
			dir = dir.above()
		}
		n, errno := r.door.node(r.ctx, dir)
		if errno != 0 {
			return statusOf(errno)
		}
		r.out.opaque(r.door.objects.handle(dir))
		r.postAttr(dir, n)
	} else if st := r.found(dir, in, name, false); st != nfsOK {
		return st
	}
	r.out.bool(false) // the directory's attributes
	return nfsOK
}

// found looks up a name and writes its handle and attributes, for a post_op_fh3 with optional set.
func (r *request) found(dir *object, in nodes.Dir, name string, optional bool) status {
	look, errno := r.door.look(r.ctx, dir)
	if errno != 0 {
		return statusOf(errno)
	}
	defer look.Close()
	child, errno := look.Find(r.ctx, nodes.Named(name))
	if errno != 0 {
		return statusOf(errno)
	}
	o := r.door.objects.child(dir, name, &child)
	if optional {
		r.out.bool(true)
	}
	r.out.opaque(r.door.objects.handle(o))
	r.childAttr(&look, o, &child)
	return nfsOK
}

// symlink answers SYMLINK.
func (r *request) symlink() status {
	dir, in, name, st := r.name()
	skipAttr(r.in)
	target := r.in.text()
	if st != nfsOK || r.in.bad {
		return st
	}
	links, ok := in.(nodes.LinkDir)
	if !ok {
		return statusOf(nodes.DenyName(in, name, "symlink"))
	}
	r.ctx = context.WithoutCancel(r.ctx)
	if errno := links.Symlink(r.ctx, target, name); errno != 0 {
		return statusOf(errno)
	}
	if st := r.found(dir, in, name, true); st != nfsOK {
		return st
	}
	r.wcc(dir, in)
	return nfsOK
}

// skipAttr skips a sattr3.
func skipAttr(d *decoder) {
	for range 3 {
		if d.bool() {
			d.u32()
		}
	}
	if d.bool() {
		d.u64()
	}
	for range 2 {
		if d.u32() == 2 {
			d.u64()
		}
	}
}

// remove answers REMOVE.
func (r *request) remove() status {
	dir, in, name, st := r.name()
	if st != nfsOK {
		return st
	}
	links, ok := in.(nodes.LinkDir)
	if !ok {
		return statusOf(nodes.DenyName(in, name, "unlink"))
	}
	if errno := links.Remove(r.ctx, name); errno != 0 {
		return statusOf(errno)
	}
	r.wcc(dir, in)
	return nfsOK
}

// rename answers RENAME.
func (r *request) rename() status {
	dir, in, name, st := r.name()
	to, _, newName, st2 := r.name()
	switch {
	case st != nfsOK:
		return st
	case st2 != nfsOK:
		return st2
	}
	links, ok := in.(nodes.LinkDir)
	if !ok || to != dir {
		return statusOf(nodes.DenyName(in, name, "rename"))
	}
	if errno := links.Rename(context.WithoutCancel(r.ctx), name, newName, 0); errno != 0 {
		return statusOf(errno)
	}
	r.wcc(dir, in)
	r.wcc(dir, in)
	return nfsOK
}

// refuse answers a change that no directory allows.
func refuse(op string) func(*request) status {
	return func(r *request) status {
		_, in, name, st := r.name()
		if st != nfsOK {
			return st
		}
		return statusOf(nodes.DenyName(in, name, op))
	}
}

// link answers LINK, which is refused.
func (r *request) link() status {
	if _, _, st := r.object(); st != nfsOK {
		return st
	}
	return refuse("link")(r)
}
