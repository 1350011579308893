package nfs

import (
	"strings"
	"syscall"

	"sessionfs/nodes"
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
		8:  {func(r *request) { r.refuse("create") }, 2, false},
		9:  {func(r *request) { r.refuse("mkdir") }, 2, false},
		10: {(*request).symlink, 2, true},
		11: {func(r *request) { r.refuse("mknod") }, 2, false},
		12: {(*request).remove, 2, true},
		13: {func(r *request) { r.refuse("rmdir") }, 2, false},
		14: {(*request).rename, 4, true},
		15: {func(r *request) { r.refuse("link") }, 3, false},
		16: {func(r *request) { r.readDir(false) }, 1, false},
		17: {func(r *request) { r.readDir(true) }, 1, false},
		18: {(*request).fsStat, 1, false},
		19: {(*request).fsInfo, 1, false},
		20: {(*request).pathConf, 1, false},
		21: {(*request).commit, 2, false},
	},
}

// emptyList answers with a list of paths, which has none: its word is the status.
func emptyList(*request) {}

// mount answers MNT for the exported path, or a directory below it.
func (r *request) mount() {
	below, isExported := r.useExport(r.in.text())
	r.require(isExported, syscall.EACCES)
	r.from.trust()
	dir := r.root
	isSlash := func(c rune) bool { return c == '/' }
	for name := range strings.FieldsFuncSeq(below, isSlash) {
		dir, _ = r.lookIn(dir, name)
	}
	r.dir(dir) // it must be a directory
	r.out.putOpaque(r.sign(dir.handle))
	r.out.put32(1) // number of ways to authenticate
	r.out.put32(authSys)
}

// name decodes a directory, with its node, and a name in it. A name that no file can have ends the request.
func (r *request) name() (dir *handledNode, node nodes.Dir, name string) {
	dir = r.object()
	name = r.in.text()
	node = r.dir(dir)
	r.require(len(name) <= syscall.NAME_MAX, syscall.ENAMETOOLONG)
	r.require(name != "", syscall.EINVAL)
	return dir, node, name
}

// getAttr answers GETATTR.
func (r *request) getAttr() {
	o := r.object()
	a := r.attr(o)
	r.putAttr(o, a)
}

// access answers ACCESS.
func (r *request) access() {
	o := r.object()
	want := r.in.u32()
	a := r.attr(o)
	r.putKnown(o, a)
	r.out.put32(want & rights(a.Mode))
}

// rights returns the rights of ACCESS by a mode, for owner, group and others alike: the server does
// no more than its user may.
func rights(mode uint32) (rights uint32) {
	const ( // of RFC 1813
		read    = 1
		lookup  = 2
		modify  = 4
		extend  = 8
		remove  = 16
		execute = 32
	)
	ofAnybody := mode | mode>>3 | mode>>6
	if ofAnybody&0o4 != 0 {
		rights |= read
	}
	if ofAnybody&0o2 != 0 {
		rights |= modify | extend | remove
	}
	if ofAnybody&0o1 != 0 {
		rights |= lookup | execute
	}
	return rights
}

// lookup answers LOOKUP.
func (r *request) lookup() {
	dir, _, name := r.name()
	o := dir
	a := nodes.Attr{}
	switch name {
	case ".": // the directory itself
	case "..":
		o = dir.parent
	default:
		o, a = r.lookIn(dir, name)
	}
	r.out.putOpaque(r.sign(o.handle))
	r.putKnown(o, a)
	r.out.noAttributes() // of the directory
}

// readLink answers READLINK.
func (r *request) readLink() {
	o := r.object()
	link, isLink := o.node.(nodes.Link)
	r.require(isLink, syscall.EINVAL)
	target, err := link.Target(r.ctx)
	r.check(nodes.Stale(o.node, o.name, "readlink", err))
	r.out.noAttributes()
	r.out.putOpaque([]byte(target))
}

// newAttr decodes a sattr3. Times are ignored, and so is a size but 0, which > sends: empties reports that.
func (r *request) newAttr() (change nodes.AttrChange, empties bool) {
	change.Mode = r.optional32()
	change.UID = r.optional32()
	change.GID = r.optional32()
	hasSize := r.in.bool()
	if hasSize {
		size := r.in.u64()
		empties = size == 0
	}
	const timeOfClient = 2
	for range 2 { // atime and mtime
		how := r.in.u32()
		if how == timeOfClient {
			r.in.u64()
		}
	}
	return change, empties
}

// optional32 decodes a word that may be left out; nil if it is.
func (r *request) optional32() *uint32 {
	isThere := r.in.bool()
	if !isThere {
		return nil
	}
	word := r.in.u32()
	return &word
}

// setAttr answers SETATTR. It changes nothing but the size that clients have of a file that accepts lines.
func (r *request) setAttr() {
	o := r.object()
	change, empties := r.newAttr()
	_, errno := nodes.SetAttr(r.ctx, o.node, o.name, change)
	r.check(errno)
	if o.lines != nil && empties {
		o.lines.empty()
	}
	r.out.noChange()
}

// write answers WRITE. All bytes that it takes are durable.
func (r *request) write() {
	o := r.object()
	off := int64(r.in.u64())
	r.in.u64() // how many bytes, and how durable they must be
	data := r.in.opaque(maxWrite)
	if o.lines == nil || nodes.IsUnchangeable(o.node) {
		r.check(nodes.Deny(o.node, o.name, "write"))
	}
	r.require(off >= 0, syscall.EINVAL)
	taken := o.lines.write(r, data, off)
	r.check(o.lines.file.Sync(r.ctx))
	const fileSync = 2
	r.out.noAttributes() // before the write
	r.putKnown(o, r.knownAttr(o))
	r.out.put32(uint32(taken))
	r.out.put32(fileSync)
	r.out.put64(r.epoch)
}

// commit answers COMMIT.
func (r *request) commit() {
	r.object() // all is durable
	r.out.noChange()
	r.out.put64(r.epoch)
}

// linkDir decodes a directory that has links to replace, and a name in it. In others that is
// refused.
func (r *request) linkDir(op string) (links nodes.LinkDir, name string) {
	_, dir, name := r.name()
	links, hasLinks := dir.(nodes.LinkDir)
	if !hasLinks {
		r.check(nodes.DenyName(dir, name, op))
	}
	return links, name
}

// symlink answers SYMLINK.
func (r *request) symlink() {
	links, name := r.linkDir("symlink")
	r.newAttr() // a link has no mode or owner of its own
	target := r.in.text()
	errno := links.Symlink(r.ctx, target, name)
	r.check(errno)
	r.out.putBool(false) // no handle of the link
	r.out.noAttributes() // of the link
	r.out.noChange()     // of the directory
}

// remove answers REMOVE and RMDIR.
func (r *request) remove() {
	links, name := r.linkDir("unlink")
	errno := links.Remove(r.ctx, name)
	r.check(errno)
	r.out.noChange()
}

// rename answers RENAME.
func (r *request) rename() {
	links, name := r.linkDir("rename")
	_, newDir, newName := r.name()
	if newDir != links {
		r.check(nodes.DenyName(links, name, "rename"))
	}
	errno := links.Rename(r.ctx, name, newName, 0)
	r.check(errno)
	r.out.noChange() // of the old directory
	r.out.noChange() // of the new one
}

// refuse answers a change that no directory allows.
func (r *request) refuse(op string) {
	if op == "link" {
		r.object() // the file, which comes before the directory
	}
	_, dir, name := r.name()
	r.check(nodes.DenyName(dir, name, op))
}

// fsStat answers FSSTAT with the numbers of the file system of SOURCE, zeros if they are unknown.
func (r *request) fsStat() {
	o := r.object()
	var s nodes.Space
	if r.space != nil {
		var err error
		s, err = r.space()
		r.check(nodes.Fail(o.node, o.name, "statfs", err))
	}
	unit := uint64(s.FragmentSize)
	const holdsFor = 0 // seconds
	r.out.noAttributes()
	r.out.put64(s.Blocks * unit)
	r.out.put64(s.Free * unit)
	r.out.put64(s.Available * unit)
	r.out.put64(s.Files)
	r.out.put64(s.FreeFiles)
	r.out.put64(s.FreeFiles) // available files
	r.out.put32(holdsFor)
}

// fsInfo answers FSINFO. The comments are the names of RFC 1813.
func (r *request) fsInfo() {
	r.object()
	const (
		links          = 2
		sameEverywhere = 8
		setsTime       = 16
		largestFile    = 1<<63 - 1
	)
	r.out.noAttributes()
	r.out.put32(maxRead)     // rtmax
	r.out.put32(maxRead)     // rtpref
	r.out.put32(1)           // rtmult
	r.out.put32(maxWrite)    // wtmax
	r.out.put32(maxWrite)    // wtpref
	r.out.put32(1)           // wtmult
	r.out.put32(maxWrite)    // dtpref
	r.out.put64(largestFile) // maxfilesize
	r.out.put32(0)           // time_delta, seconds
	r.out.put32(1)           // time_delta, nanoseconds
	r.out.put32(links | sameEverywhere | setsTime)
}

// pathConf answers PATHCONF.
func (r *request) pathConf() {
	r.object()
	r.out.noAttributes()
	r.out.put32(1)       // linkmax
	r.out.put32(255)     // name_max
	r.out.putBool(true)  // no_trunc: long names fail
	r.out.putBool(true)  // chown_restricted
	r.out.putBool(false) // case_insensitive
	r.out.putBool(true)  // case_preserving
}
