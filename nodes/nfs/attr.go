package nfs

import (
	"context"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// status is an nfsstat3 of RFC 1813.
type status uint32

const (
	nfsOK          status = 0
	nfsIO          status = 5
	nfsInvalid     status = 22
	nfsBadHandle   status = 10001
	nfsTooSmall    status = 10005
	nfsServerFault status = 10006
)

// statuses are those of errnos that have the same meaning. A client would wait for ever for an answer to a file that is
// busy, so that is no access, as are those that the protocol has no number for.
var statuses = map[syscall.Errno]status{
	syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EACCES: 13, syscall.EEXIST: 17, syscall.EXDEV: 18, syscall.ENOTDIR: 20,
	syscall.EISDIR: 21, syscall.EINVAL: nfsInvalid, syscall.EFBIG: 27, syscall.ENOSPC: 28, syscall.EROFS: 30,
	syscall.ENAMETOOLONG: 63, syscall.ENOTEMPTY: 66, syscall.EDQUOT: 69, syscall.ESTALE: 70, syscall.ELOOP: nfsInvalid,
	syscall.EBUSY: 13, syscall.ENOMEM: 13, syscall.EOPNOTSUPP: 13, errBadHandle: nfsBadHandle,
}

func statusOf(errno syscall.Errno) status {
	if errno == 0 {
		return nfsOK
	}
	if s, ok := statuses[errno]; ok {
		return s
	}
	return nfsIO
}

// attr returns the attributes of a node now. Those of a generated file take rendering it: known is false if they do and
// render is not set.
func (d *Door) attr(ctx context.Context, o *object, n nodes.Node, render bool) (a nodes.Attr, known bool, errno syscall.Errno) {
	var err error
	switch n := n.(type) {
	case nodes.Dir:
		if o.wasListed() { // so that o.changed is right
			if list, errno := d.list(ctx, o, false); errno == 0 {
				d.lists.release(list)
			}
		}
		a, err = n.Stat(ctx)
	case nodes.Link, *nodes.SourceFile, *nodes.EntryFile:
		a, err = n.Stat(ctx)
	case nodes.File:
		control, lines := n.(nodes.Control)
		if lines && !control.Readable() {
			a, err = n.Stat(ctx)
		} else if !render {
			return a, false, 0
		} else if f, errno := d.files.open(ctx, o, n, true); errno != 0 {
			return a, false, errno
		} else {
			a = f.attr
			d.files.release(f)
		}
		if lines && err == nil {
			a.Size = o.linesOf(control).tell(a.Size)
		}
	}
	if err != nil {
		return a, false, nodes.Stale(n, o.name, "stat", err)
	}
	return a, true, 0
}

func (o *object) wasListed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listed
}

// types are the ftype3 of kinds.
var types = map[storage.Kind]uint32{storage.KindDir: 2, storage.KindLink: 5}

// writeAttr writes a fattr3.
func (r *request) writeAttr(o *object, a *nodes.Attr) {
	o.mu.Lock()
	changed := o.changed
	o.mu.Unlock()
	e := &r.out
	kind := types[a.Kind]
	if kind == 0 {
		kind = 1
	}
	e.u32(kind, a.Mode, 1, a.UID, a.GID)
	e.u64(uint64(a.Size), uint64(a.Size))
	e.u32(0, 0) // no device
	e.u64(r.door.objects.root.id.number(), o.id.number())
	modified, ctime := later(a.Modified, changed), later(a.Changed, changed)
	for _, t := range []time.Time{modified, modified, ctime} {
		e.u32(uint32(max(t.Unix(), 0)), uint32(t.Nanosecond()))
	}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// postAttr writes the attributes after an operation, which may be left out.
func (r *request) postAttr(o *object, n nodes.Node) {
	a, known, _ := r.door.attr(r.ctx, o, n, false)
	r.out.bool(known)
	if known {
		r.writeAttr(o, &a)
	}
}

// childAttr writes the attributes of a child that was found in a directory, if that does not take long.
func (r *request) childAttr(look *nodes.Look, o *object, c *nodes.Child) {
	a, known := c.Attr, c.Attr.Kind != storage.KindOther
	if !known {
		n := o.setNode(c)
		var errno syscall.Errno
		if c.Kind == storage.KindFile {
			a, known, _ = r.door.attr(r.ctx, o, n, false)
		} else {
			a, errno = look.Attr(r.ctx, o.name, c, n)
			known = errno == 0
		}
	}
	r.out.bool(known)
	if known {
		r.writeAttr(o, &a)
	}
}

// Bits of ACCESS.
const (
	mayRead    = 1 << 0
	mayLookup  = 1 << 1
	mayModify  = 1 << 2
	mayExtend  = 1 << 3
	mayDelete  = 1 << 4
	mayExecute = 1 << 5
)

// access returns which of the rights the caller has by the mode of a node.
func (c *call) access(a *nodes.Attr) (rights uint32) {
	mode := a.Mode
	switch {
	case c.uid == 0:
		mode = 0o6 | (mode|mode>>3|mode>>6)&1
		if a.Mode&0o222 == 0 && a.Kind == storage.KindFile {
			mode &^= 0o2 // a file that refuses writes refuses root's too
		}
	case c.uid == a.UID:
		mode >>= 6
	case c.inGroup(a.GID):
		mode >>= 3
	}
	isDir := a.Kind == storage.KindDir
	if mode&4 != 0 {
		rights |= mayRead
	}
	if mode&2 != 0 {
		rights |= mayModify | mayExtend
		if isDir {
			rights |= mayDelete
		}
	}
	if mode&1 != 0 {
		rights |= mayExecute
		if isDir {
			rights |= mayLookup
		}
	}
	return rights
}

func (c *call) inGroup(gid uint32) bool {
	for _, g := range c.gids {
		if g == gid {
			return true
		}
	}
	return false
}
