package nfs

import (
	"context"
	"fmt"
	"runtime/debug"

	"sessionfs/nodes"
)

// request is a call of the NFS program.
type request struct {
	*call
	door *Door
	ctx  context.Context
	in   *decoder
	// trust notes that the caller has a handle of ours.
	trust func()
	out   encoder
}

// procedure is one of the NFS program. On failure its reply has only zero words behind the status: attributes and others
// that are left out.
type procedure struct {
	do      func(*request) status
	zeros   int
	changes bool // it must not be done twice
}

// procedures by their numbers.
var procedures = [...]procedure{
	1:  {(*request).getAttr, 0, false},
	2:  {(*request).setAttr, 2, true},
	3:  {(*request).lookup, 1, false},
	4:  {(*request).accessFor, 1, false},
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
	15: {(*request).link, 3, false},
	16: {func(r *request) status { return r.readDir(false) }, 1, false},
	17: {func(r *request) status { return r.readDir(true) }, 1, false},
	18: {(*request).fsStat, 1, false},
	19: {(*request).fsInfo, 1, false},
	20: {(*request).pathConf, 1, false},
	21: {(*request).commit, 2, false},
}

// answer carries out a request. One that panics fails alone.
func (r *request) answer(p procedure) (accepted uint32) {
	defer func() {
		if reason := recover(); reason != nil {
			r.door.log.Error("a bug: a request panicked and was answered with EIO", "panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			r.fail(nfsServerFault, p.zeros)
		}
	}()
	st := p.do(r)
	if r.in.bad {
		return garbageArguments
	}
	if st != nfsOK {
		r.fail(st, p.zeros)
	}
	return success
}

// fail makes the reply that of a failure.
func (r *request) fail(st status, zeros int) {
	r.out.b = r.out.b[:0]
	r.out.u32(uint32(st))
	for range zeros {
		r.out.u32(0)
	}
}

// object decodes a handle.
func (r *request) object() (*object, nodes.Node, status) {
	handle := r.in.opaque(handleSize)
	if r.in.bad {
		return nil, nil, nfsBadHandle
	}
	o, n, errno := r.door.object(r.ctx, handle)
	if errno != errBadHandle {
		r.trust()
	}
	return o, n, statusOf(errno)
}

// getAttr answers GETATTR.
func (r *request) getAttr() status {
	o, n, st := r.object()
	if st != nfsOK {
		return st
	}
	a, _, errno := r.door.attr(r.ctx, o, n, true)
	if errno != 0 {
		return statusOf(errno)
	}
	r.writeAttr(o, &a)
	return nfsOK
}

// accessFor answers ACCESS.
func (r *request) accessFor() status {
	o, n, st := r.object()
	want := r.in.u32()
	if st != nfsOK {
		return st
	}
	a, _, errno := r.door.attr(r.ctx, o, n, true)
	if errno != 0 {
		return statusOf(errno)
	}
	r.out.bool(true)
	r.writeAttr(o, &a)
	r.out.u32(want & r.access(&a))
	return nfsOK
}

// readLink answers READLINK.
func (r *request) readLink() status {
	o, n, st := r.object()
	if st != nfsOK {
		return st
	}
	link, ok := n.(nodes.Link)
	if !ok {
		return nfsInvalid
	}
	target, err := link.Target(r.ctx)
	if err != nil {
		return statusOf(nodes.Stale(n, o.name, "readlink", err))
	}
	r.out.bool(false)
	r.out.text(target)
	return nfsOK
}

// fsStat answers FSSTAT with the numbers of the file system of SOURCE.
func (r *request) fsStat() status {
	o, n, st := r.object()
	if st != nfsOK {
		return st
	}
	var space nodes.Space
	if of := r.door.space; of != nil {
		var err error
		if space, err = of(); err != nil {
			return statusOf(nodes.Fail(n, o.name, "statfs", err))
		}
	}
	unit := uint64(space.FragmentSize)
	r.out.bool(false)
	r.out.u64(space.Blocks*unit, space.Free*unit, space.Available*unit, space.Files, space.FreeFiles, space.FreeFiles)
	r.out.u32(0) // how long that holds
	return nfsOK
}

// fsInfo answers FSINFO.
func (r *request) fsInfo() status {
	if _, _, st := r.object(); st != nfsOK {
		return st
	}
	const links, sameEverywhere, setsTime = 2, 8, 16
	r.out.bool(false)
	r.out.u32(maxRead, maxRead, 1, maxWrite, maxWrite, 1, maxWrite)
	r.out.u64(1<<63 - 1)
	r.out.u32(0, 1) // times count nanoseconds
	r.out.u32(links | sameEverywhere | setsTime)
	return nfsOK
}

// pathConf answers PATHCONF.
func (r *request) pathConf() status {
	if _, _, st := r.object(); st != nfsOK {
		return st
	}
	r.out.bool(false)
	r.out.u32(1, 255) // hard links, length of a name
	for _, v := range []bool{true, true, false, true} {
		r.out.bool(v) // long names fail, chown is restricted, case counts, and is kept
	}
	return nfsOK
}
