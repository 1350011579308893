package nfs

import (
	"slices"
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

// statuses are those of errnos. A client would wait for ever for a file that is busy (JUKEBOX), so
// that is no access, as are those that the protocol has no number for.
var statuses = map[syscall.Errno]status{
	0: nfsOK, syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EACCES: 13, syscall.EEXIST: 17, syscall.EXDEV: 18,
	syscall.ENOTDIR: 20, syscall.EISDIR: 21, syscall.EINVAL: nfsInvalid, syscall.EFBIG: 27, syscall.ENOSPC: 28,
	syscall.EROFS: 30, syscall.ENAMETOOLONG: 63, syscall.ENOTEMPTY: 66, syscall.EDQUOT: 69, syscall.ESTALE: 70,
	syscall.EBUSY: 13, syscall.ENOMEM: 13, syscall.EOPNOTSUPP: 13,
}

func statusOf(errno syscall.Errno) status {
	if s, ok := statuses[errno]; ok {
		return s
	}
	return nfsIO
}

// attr returns the attributes of a node now. Those of a generated file take rendering it: known is
// false if they do and render is not set.
func (r *request) attr(o *object, n nodes.Node, render bool) (a nodes.Attr, known bool, errno syscall.Errno) {
	if o.wasListed() { // so that o.changed is right
		if list, errno := r.door.list(r.ctx, o, false); errno == 0 {
			r.door.lists.release(list)
		}
	}
	file, lines, generated := generatedFile(n)
	if !generated {
		a, err := n.Stat(r.ctx)
		if lines != nil {
			a.Size = o.linesOf(lines).taken()
		}
		return a, err == nil, nodes.Stale(n, o.name, "stat", err)
	}
	if !render {
		return a, false, 0
	}
	open, errno := r.open(o, file, true)
	if errno != 0 {
		return a, false, errno
	}
	defer r.door.files.release(open)
	a = open.value.attr
	if lines != nil {
		tail := make([]byte, min(a.Size, tailSize))
		if _, err := open.value.handle.ReadAt(r.ctx, tail, a.Size-int64(len(tail))); err == nil || len(tail) == 0 {
			a.Size = o.linesOf(lines).show(a.Size, tail)
		}
	}
	return a, true, 0
}

// generatedFile reports whether a node is a file that is rendered for its size, and returns it as a
// file, and as one that accepts lines.
func generatedFile(n nodes.Node) (file nodes.File, lines nodes.Control, generated bool) {
	switch n := n.(type) {
	case *nodes.SourceFile, *nodes.EntryFile:
		return n.(nodes.File), nil, false
	case nodes.Control:
		return n, n, n.Readable()
	case nodes.File:
		return n, nil, true
	}
	return nil, nil, false
}

func (o *object) wasListed() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listed
}

// writeAttr writes a fattr3.
func (r *request) writeAttr(o *object, a *nodes.Attr) {
	o.mu.Lock()
	changed := o.changed
	o.mu.Unlock()
	kind := map[storage.Kind]uint32{storage.KindFile: 1, storage.KindDir: 2, storage.KindLink: 5}[a.Kind]
	r.out.u32(kind, a.Mode, 1, a.UID, a.GID)
	r.out.u64(uint64(a.Size), uint64(a.Size), 0, r.door.objects.root.id.number(), o.id.number())
	later := func(t time.Time) time.Time { return slices.MaxFunc([]time.Time{t, changed}, time.Time.Compare) }
	for _, t := range []time.Time{later(a.Modified), later(a.Modified), later(a.Changed)} {
		r.out.u32(uint32(max(t.Unix(), 0)), uint32(t.Nanosecond()))
	}
}

// optionalAttr writes attributes that may be left out.
func (r *request) optionalAttr(o *object, a *nodes.Attr, known bool) {
	if r.out.bool(known); known {
		r.writeAttr(o, a)
	}
}

// postAttr writes the attributes after an operation, unless they take long.
func (r *request) postAttr(o *object, n nodes.Node) {
	a, known, _ := r.attr(o, n, false)
	r.optionalAttr(o, &a, known)
}

// wcc writes the attributes after a change, without those before it.
func (r *request) wcc(o *object, n nodes.Node) {
	r.out.bool(false)
	r.postAttr(o, n)
}

// childAttr writes the attributes of a child that was found in a directory, unless they take long.
func (r *request) childAttr(look *nodes.Look, o *object, c *nodes.Child) {
	a, known := c.Attr, c.Attr.Kind != storage.KindOther
	if !known && c.Kind == storage.KindFile {
		a, known, _ = r.attr(o, o.makeNode(c), false)
	} else if !known {
		var errno syscall.Errno
		a, errno = look.Attr(r.ctx, o.name, c, o.makeNode(c))
		known = errno == 0
	}
	r.optionalAttr(o, &a, known)
}

// Rights of ACCESS.
const (
	mayRead = 1 << iota
	mayLookup
	mayModify
	mayExtend
	mayDelete
	mayExecute
)

// access returns the rights that the caller has by the mode of a node.
func (c *call) access(a *nodes.Attr) (rights uint32) {
	mode, isDir := a.Mode&7, a.Kind == storage.KindDir
	switch {
	case c.uid == 0: // a file that refuses writes refuses root's too
		mode = 4 | (a.Mode|a.Mode>>3|a.Mode>>6)&3
	case c.uid == a.UID:
		mode = a.Mode >> 6 & 7
	case slices.Contains(c.gids, a.GID):
		mode = a.Mode >> 3 & 7
	}
	for _, right := range []struct{ bit, file, dir uint32 }{
		{4, mayRead, mayRead},
		{2, mayModify | mayExtend, mayModify | mayExtend | mayDelete},
		{1, mayExecute, mayLookup | mayExecute},
	} {
		switch {
		case mode&right.bit == 0:
		case isDir:
			rights |= right.dir
		default:
			rights |= right.file
		}
	}
	return rights
}
