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
	syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EACCES: nfsAccess, syscall.EEXIST: 17, syscall.EXDEV: 18,
	syscall.ENOTDIR: 20, syscall.EISDIR: 21, syscall.EINVAL: 22, syscall.EFBIG: 27, syscall.ENOSPC: 28,
	syscall.EROFS: 30, syscall.ENAMETOOLONG: 63, syscall.ENOTEMPTY: 66, syscall.EDQUOT: 69, syscall.ESTALE: 70,
	syscall.EBUSY: nfsAccess, syscall.ENOMEM: nfsAccess, syscall.EOPNOTSUPP: nfsAccess,
}

// types are those of RFC 1813, ftype3.
var types = map[storage.Kind]int{storage.KindFile: 1, storage.KindDir: 2, storage.KindLink: 5}

// isRendered reports whether a node is a file that is rendered for its size.
func isRendered(n nodes.Node) bool {
	switch n := n.(type) {
	case *nodes.SourceFile, *nodes.EntryFile:
		return false
	case nodes.Control:
		return n.Readable()
	case nodes.File:
		return true
	}
	return false
}

// knownAttr returns the attributes of an object now if they take no rendering, else those of no
// kind.
func (r *request) knownAttr(o *object) (a nodes.Attr) {
	if !isRendered(o.node) {
		a, _ = o.node.Stat(r.ctx) // a client that needs them gets the error
	}
	return a
}

// attr returns the attributes of an object now. Those of a generated file take rendering it.
func (r *request) attr(o *object) nodes.Attr {
	if o.sum.Load() != 0 { // so that o.changed is right
		if list, errno := r.list(o, justNow); errno == 0 {
			list.RUnlock()
		}
	}
	if !isRendered(o.node) {
		a, err := o.node.Stat(r.ctx)
		r.check(nodes.Stale(o.node, o.name, "stat", err))
		return a
	}
	v := r.open(o, true)
	defer v.RUnlock()
	a := v.attr
	if o.lines != nil {
		tail := make([]byte, min(a.Size, tailSize))
		if _, err := v.handle.ReadAt(r.ctx, tail, a.Size-int64(len(tail))); err == nil || len(tail) == 0 {
			o.lines.show(a.Size, tail)
		}
	}
	return a
}

// putAttr encodes a fattr3.
func (r *request) putAttr(o *object, a nodes.Attr) {
	if o.lines != nil {
		a.Size = o.lines.taken()
	}
	r.out.put(types[a.Kind], a.Mode, 1, a.UID, a.GID, a.Size, a.Size, int64(0), r.root.ID.number(), o.ID.number())
	for _, t := range []time.Time{a.Modified, a.Modified, a.Changed} {
		ns := max(t.UnixNano(), o.changed.Load(), 0)
		r.out.put(uint32(ns/1e9), uint32(ns%1e9))
	}
}

// putKnown encodes attributes that may be left out, which those of no kind are.
func (r *request) putKnown(o *object, a nodes.Attr) {
	known := a.Kind != storage.KindOther
	if r.out.put(known); known {
		r.putAttr(o, a)
	}
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
