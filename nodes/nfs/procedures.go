package nfs

import (
	"context"
	"fmt"
	"runtime/debug"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// request is a call of the NFS program. Its procedures panic with a status where they fail, or with
// errArguments.
type request struct {
	*call
	door *Door
	ctx  context.Context
	from *connection
	in   *decoder
	out  encoder
}

// errArguments is for a call whose arguments are cut.
const errArguments = status(1 << 31)

// procedure is one of the NFS program.
type procedure struct {
	do      func(*request)
	zeros   int  // how many words there are behind the status of a failure: optional values that are left out
	changes bool // it must not be carried out twice
}

// procedures by their numbers.
var procedures = [...]procedure{
	1:  {(*request).getAttr, 0, false},
	2:  {(*request).setAttr, 2, true},
	3:  {(*request).lookup, 1, false},
	4:  {(*request).rights, 1, false},
	5:  {(*request).readLink, 1, false},
	6:  {(*request).readFile, 1, false},
	7:  {(*request).writeFile, 2, true},
	8:  {refuse("create"), 2, false},
	9:  {refuse("mkdir"), 2, false},
	10: {(*request).symlink, 2, true},
	11: {refuse("mknod"), 2, false},
	12: {(*request).remove, 2, true},
	13: {refuse("rmdir"), 2, false},
	14: {(*request).rename, 4, true},
	15: {refuse("link"), 3, false},
	16: {func(r *request) { r.readDir(false) }, 1, false},
	17: {func(r *request) { r.readDir(true) }, 1, false},
	18: {(*request).fsStat, 1, false},
	19: {(*request).fsInfo, 1, false},
	20: {(*request).pathConf, 1, false},
	21: {(*request).commit, 2, false},
}

// answer carries out a request. One that fails with a bug fails alone.
func (r *request) answer(p procedure) (reply []byte) {
	defer func() {
		reason := recover()
		st, failed := reason.(status)
		if reason != nil && !failed {
			r.door.log.Error("a bug: a request panicked and was answered with EIO",
				"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			st = nfsServerFault
		}
		switch st {
		case nfsOK:
		case errArguments:
			reply = r.accepted(badArguments)
		default:
			var e encoder
			e.u32(uint32(st))
			e.u32(make([]uint32, p.zeros)...)
			reply = r.accepted(success, e.b...)
		}
	}()
	r.out.u32(uint32(nfsOK))
	p.do(r)
	return r.accepted(success, r.out.b...)
}

// check ends the request where errno is not 0.
func (r *request) check(errno syscall.Errno) {
	if errno != 0 {
		panic(statusOf(errno))
	}
}

// checkArguments ends the request if its arguments are cut.
func (r *request) checkArguments() {
	if r.in.bad {
		panic(errArguments)
	}
}

// object decodes a handle.
func (r *request) object() (*object, nodes.Node) {
	handle := r.in.opaque(handleSize)
	r.checkArguments()
	if !r.door.objects.isOurs(handle) {
		panic(nfsBadHandle)
	}
	r.from.trusted.Store(true)
	o, n, errno := r.door.object(r.ctx, handle)
	r.check(errno)
	return o, n
}

// name decodes a directory and a name in it.
func (r *request) name() (*object, nodes.Dir, string) {
	o, n := r.object()
	name := r.in.text()
	r.checkArguments()
	dir, ok := n.(nodes.Dir)
	switch {
	case !ok:
		panic(statusOf(syscall.ENOTDIR))
	case len(name) > 255:
		panic(statusOf(syscall.ENAMETOOLONG))
	case name == "":
		panic(nfsInvalid)
	}
	return o, dir, name
}

// getAttr answers GETATTR.
func (r *request) getAttr() {
	o, n := r.object()
	a, _, errno := r.attr(o, n, true)
	r.check(errno)
	r.writeAttr(o, &a)
}

// rights answers ACCESS.
func (r *request) rights() {
	o, n := r.object()
	want := r.in.u32()
	r.checkArguments()
	a, _, errno := r.attr(o, n, true)
	r.check(errno)
	r.optionalAttr(o, &a, true)
	r.out.u32(want & r.access(&a))
}

// lookup answers LOOKUP.
func (r *request) lookup() {
	dir, _, name := r.name()
	if name == "." || name == ".." {
		if name == ".." {
			dir = dir.above()
		}
		n, errno := r.door.node(r.ctx, dir)
		r.check(errno)
		r.out.opaque(r.door.objects.handle(dir))
		r.postAttr(dir, n)
	} else {
		r.found(dir, name)
	}
	r.out.bool(false) // the directory's attributes
}

// found looks a name up, and writes its handle and attributes.
func (r *request) found(dir *object, name string) {
	look, errno := r.door.look(r.ctx, dir)
	r.check(errno)
	defer look.Close()
	o, child, errno := r.door.find(r.ctx, &look, dir, name)
	r.check(errno)
	r.out.opaque(r.door.objects.handle(o))
	r.childAttr(&look, o, &child)
}

// readLink answers READLINK.
func (r *request) readLink() {
	o, n := r.object()
	if o.kind != storage.KindLink {
		panic(nfsInvalid)
	}
	target, err := n.(nodes.Link).Target(r.ctx)
	r.check(nodes.Stale(n, o.name, "readlink", err))
	r.out.bool(false) // attributes
	r.out.text(target)
}

// fsStat answers FSSTAT with the numbers of the file system of SOURCE.
func (r *request) fsStat() {
	o, n := r.object()
	var space nodes.Space
	if r.door.space != nil {
		var err error
		space, err = r.door.space()
		r.check(nodes.Fail(n, o.name, "statfs", err))
	}
	unit := uint64(space.FragmentSize)
	r.out.bool(false)
	r.out.u64(space.Blocks*unit, space.Free*unit, space.Available*unit, space.Files, space.FreeFiles, space.FreeFiles)
	r.out.u32(0) // how long that holds
}

// fsInfo answers FSINFO.
func (r *request) fsInfo() {
	r.object()
	const links, sameEverywhere, setsTime = 2, 8, 16
	r.out.bool(false)
	r.out.u32(maxRead, maxRead, 1, maxWrite, maxWrite, 1, maxWrite)
	r.out.u64(1<<63 - 1) // the largest file
	r.out.u32(0, 1)      // times count nanoseconds
	r.out.u32(links | sameEverywhere | setsTime)
}

// pathConf answers PATHCONF.
func (r *request) pathConf() {
	r.object()
	r.out.bool(false)
	r.out.u32(1, 255)     // hard links, length of a name
	r.out.u32(1, 1, 0, 1) // long names fail, chown is restricted, case counts, and is kept
}
