package nfs

import (
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// Statuses of RFC 1813, nfsstat3.
const (
	nfsOK          = 0
	nfsIO          = 5
	nfsAccess      = 13
	nfsBadHandle   = 10001
	nfsTooSmall    = 10005
	nfsServerFault = 10006
)

// statuses are those of errnos. A client would wait for ever for a file that is busy (JUKEBOX), so
// that is no access, as are those that the protocol has no number for.
var statuses = map[syscall.Errno]uint32{
	0: nfsOK, syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EACCES: nfsAccess, syscall.EEXIST: 17, syscall.EXDEV: 18,
	syscall.ENOTDIR: 20, syscall.EISDIR: 21, syscall.EINVAL: 22, syscall.EFBIG: 27, syscall.ENOSPC: 28,
	syscall.EROFS: 30, syscall.ENAMETOOLONG: 63, syscall.ENOTEMPTY: 66, syscall.EDQUOT: 69, syscall.ESTALE: 70,
	syscall.EBUSY: nfsAccess, syscall.ENOMEM: nfsAccess, syscall.EOPNOTSUPP: nfsAccess,
}

// attr returns the attributes of a node now. Those of a generated file take rendering it.
func (r *request) attr(o *object, n nodes.Node) nodes.Attr {
	if o.sum.Load() != 0 { // so that o.changed is right
		if list, errno := r.list(o, n.(nodes.Dir), justNow); errno == 0 {
			list.Done()
		}
	}
	file, control := generatedFile(n)
	if file == nil {
		a, err := n.Stat(r.ctx)
		r.check(nodes.Stale(n, o.name, "stat", err))
		return a
	}
	open := r.open(o, file, true)
	defer open.Done()
	a := open.value.attr
	if control != nil {
		tail := make([]byte, min(a.Size, tailSize))
		if _, err := open.value.handle.ReadAt(r.ctx, tail, a.Size-int64(len(tail))); err == nil || len(tail) == 0 {
			o.linesOf(control).show(a.Size, tail)
		}
	}
	return a
}

// generatedFile returns a node as a file if it is rendered for its size, else nil; control is the
// same file if it also accepts lines.
func generatedFile(n nodes.Node) (file nodes.File, control nodes.Control) {
	switch n := n.(type) {
	case *nodes.SourceFile, *nodes.EntryFile:
		return nil, nil
	case nodes.Control:
		if !n.Readable() {
			return nil, nil
		}
		return n, n
	case nodes.File:
		return n, nil
	}
	return nil, nil
}

// putAttr encodes a fattr3.
func (r *request) putAttr(o *object, a nodes.Attr) {
	if l := o.lines.Load(); l != nil {
		a.Size = l.taken()
	}
	kind := map[storage.Kind]uint32{storage.KindFile: 1, storage.KindDir: 2, storage.KindLink: 5}[a.Kind]
	r.out.put(kind, a.Mode, 1, a.UID, a.GID)
	r.out.putLong(uint64(a.Size), uint64(a.Size), 0, r.root.id.number(), o.id.number())
	for _, t := range []time.Time{a.Modified, a.Modified, a.Changed} {
		ns := max(t.UnixNano(), o.changed.Load(), 0)
		r.out.put(uint32(ns/1e9), uint32(ns%1e9))
	}
}

// putOptional encodes attributes that may be left out.
func (r *request) putOptional(o *object, a nodes.Attr, known bool) {
	if r.out.putBool(known); known {
		r.putAttr(o, a)
	}
}

// putStat encodes the attributes of a node after an operation, if they take no rendering.
func (r *request) putStat(o *object, n nodes.Node) {
	var a nodes.Attr
	file, _ := generatedFile(n)
	if file == nil {
		a, _ = n.Stat(r.ctx) // a client that needs them gets the error
	}
	r.putOptional(o, a, a.Kind != storage.KindOther)
}

// childAttr returns the attributes of a child that was found in a directory, if they take no
// rendering.
func (r *request) childAttr(look *nodes.Look, o *object, c *nodes.Child) nodes.Attr {
	n, a := o.makeNode(c), c.Attr
	if file, _ := generatedFile(n); a.Kind == storage.KindOther && file == nil {
		a, _ = look.Attr(r.ctx, o.name, c, n)
	}
	return a
}

// rights returns the rights of ACCESS by a mode, for owner, group and others alike: the server does
// no more than its user may.
func rights(mode uint32) (rights uint32) {
	const read, lookup, modify, extend, remove, execute = 1, 2, 4, 8, 16, 32
	for bit, right := range map[uint32]uint32{4: read, 2: modify | extend | remove, 1: lookup | execute} {
		if (mode|mode>>3|mode>>6)&bit != 0 {
			rights |= right
		}
	}
	return rights
}
