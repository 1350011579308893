package nfs

import (
	"context"
	"strings"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// procedure is one of a program.
type procedure struct {
	do      func(*request) // decodes the arguments and encodes the results behind the status; nil if there are none
	zeros   int            // how many words there are behind the status of a failure: optional values that are left out
	changes bool           // it must not be carried out twice
}

// programs have their procedures by number. Attributes beside the results are left out where a
// client seldom needs them.
var programs = map[uint32][]procedure{
	mountProgram: {
		1: {do: (*request).mount},
		2: {do: emptyList},  // DUMP
		4: {},               // UMNTALL
		5: {do: emptyList}}, // EXPORT
	nfsProgram: {
		1:  {(*request).getAttr, 0, false},
		2:  {(*request).setAttr, 2, true},
		3:  {(*request).lookup, 1, false},
		4:  {(*request).access, 1, false},
		5:  {(*request).readLink, 1, false},
		6:  {(*request).read, 1, false},
		7:  {(*request).write, 2, true},
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
	},
}

// emptyList answers with a list of paths, which has none: its word is that of the status.
func emptyList(*request) {}

// mount answers MNT for the exported path, or a directory below it.
func (r *request) mount() {
	below, ok := r.useExport(r.in.text())
	if !ok {
		r.check(syscall.EACCES)
	}
	r.from.trust()
	dir := r.root
	for name := range strings.FieldsFuncSeq(below, func(c rune) bool { return c == '/' }) {
		look := r.look(dir)
		defer look.Close()
		dir, _ = r.find(&look, dir, name)
	}
	r.dir(dir)
	r.out.putOpaque(r.handle(dir))
	r.out.put(1, authSys)
}

// name decodes a directory and a name in it.
func (r *request) name() (*object, nodes.Dir, string) {
	o, n := r.object()
	name := r.in.text()
	dir, ok := n.(nodes.Dir)
	switch {
	case !ok:
		r.check(syscall.ENOTDIR)
	case len(name) > 255:
		r.check(syscall.ENAMETOOLONG)
	case name == "":
		r.check(syscall.EINVAL)
	}
	return o, dir, name
}

func (r *request) getAttr() {
	o, n := r.object()
	r.putAttr(o, r.attr(o, n))
}

func (r *request) access() {
	o, n := r.object()
	want := r.in.u32()
	a := r.attr(o, n)
	r.putOptional(o, a, true)
	r.out.put(want & rights(a.Mode))
}

func (r *request) lookup() {
	dir, _, name := r.name()
	switch name {
	case "..":
		dir = dir.parent
		fallthrough
	case ".":
		r.out.putOpaque(r.handle(dir))
		r.out.put(0)
	default:
		look := r.look(dir)
		defer look.Close()
		o, child := r.find(&look, dir, name)
		r.out.putOpaque(r.handle(o))
		a := r.childAttr(&look, o, child)
		r.putOptional(o, a, a.Kind != storage.KindOther)
	}
	r.out.put(0)
}

func (r *request) readLink() {
	o, n := r.object()
	link, ok := n.(nodes.Link)
	if !ok {
		r.check(syscall.EINVAL)
	}
	target, err := link.Target(r.ctx)
	r.check(nodes.Stale(n, o.name, "readlink", err))
	r.out.put(0)
	r.out.putOpaque([]byte(target))
}

// newAttr decodes a sattr3. Times are ignored, and so is a size but 0, which > sends.
func (r *request) newAttr() (to nodes.AttrChange, empties bool) {
	for _, field := range []**uint32{&to.Mode, &to.UID, &to.GID} {
		if r.in.bool() {
			*field = new(r.in.u32())
		}
	}
	empties = r.in.bool() && r.in.u64() == 0
	const timeOfClient = 2
	for range 2 {
		if r.in.u32() == timeOfClient {
			r.in.u64()
		}
	}
	return to, empties
}

func (r *request) setAttr() {
	o, n := r.object()
	to, empties := r.newAttr()
	_, errno := nodes.SetAttr(r.ctx, n, o.name, to)
	r.check(errno)
	if file, ok := n.(nodes.Control); ok && empties {
		o.linesOf(file).empty()
	}
	r.out.put(0, 0)
}

// write answers WRITE. All bytes that it takes are durable.
func (r *request) write() {
	o, n := r.object()
	off := int64(r.in.u64())
	r.in.u64() // how many bytes, and how durable they must be
	data := r.in.opaque(maxWrite)
	file, ok := n.(nodes.Control)
	if !ok {
		r.check(nodes.Deny(n, o.name, "write"))
	}
	if off < 0 {
		r.check(syscall.EINVAL)
	}
	r.ctx = context.WithoutCancel(r.ctx)
	taken := o.linesOf(file).write(r, data, off)
	r.check(file.Sync(r.ctx))
	const fileSync = 2
	r.out.put(0)
	r.putStat(o, n)
	r.out.put(uint32(taken), fileSync)
	r.out.putLong(r.epoch)
}

func (r *request) commit() {
	r.object() // all is durable
	r.out.put(0, 0)
	r.out.putLong(r.epoch)
}

// linkDir decodes a directory in which links are replaced, and a name in it. In others that is
// refused.
func (r *request) linkDir(op string) (links nodes.LinkDir, name string) {
	_, in, name := r.name()
	links, ok := in.(nodes.LinkDir)
	if !ok {
		r.check(nodes.DenyName(in, name, op))
	}
	r.ctx = context.WithoutCancel(r.ctx)
	return links, name
}

func (r *request) symlink() {
	links, name := r.linkDir("symlink")
	r.newAttr()
	r.check(links.Symlink(r.ctx, r.in.text(), name))
	r.out.put(0, 0, 0, 0)
}

func (r *request) remove() {
	links, name := r.linkDir("unlink")
	r.check(links.Remove(r.ctx, name))
	r.out.put(0, 0)
}

func (r *request) rename() {
	links, name := r.linkDir("rename")
	_, to, newName := r.name()
	if to != links {
		r.check(nodes.DenyName(links, name, "rename"))
	}
	r.check(links.Rename(r.ctx, name, newName, 0))
	r.out.put(0, 0, 0, 0)
}

// refuse answers a change that no directory allows.
func refuse(op string) func(*request) {
	return func(r *request) {
		if op == "link" {
			r.object()
		}
		_, in, name := r.name()
		r.check(nodes.DenyName(in, name, op))
	}
}

// fsStat answers FSSTAT with the numbers of the file system of SOURCE.
func (r *request) fsStat() {
	o, n := r.object()
	var space nodes.Space
	if r.space != nil {
		var err error
		space, err = r.space()
		r.check(nodes.Fail(n, o.name, "statfs", err))
	}
	unit := uint64(space.FragmentSize)
	r.out.put(0)
	r.out.putLong(space.Blocks*unit, space.Free*unit, space.Available*unit)
	r.out.putLong(space.Files, space.FreeFiles, space.FreeFiles)
	r.out.put(0) // how long that holds
}

func (r *request) fsInfo() {
	r.object()
	const links, sameEverywhere, setsTime = 2, 8, 16
	r.out.put(0, maxRead, maxRead, 1, maxWrite, maxWrite, 1, maxWrite)
	r.out.putLong(1<<63 - 1) // the largest file
	r.out.put(0, 1)          // times count nanoseconds
	r.out.put(links | sameEverywhere | setsTime)
}

func (r *request) pathConf() {
	r.object()
	r.out.put(0, 1, 255)  // hard links, length of a name
	r.out.put(1, 1, 0, 1) // long names fail, chown is restricted, case counts, and is kept
}
