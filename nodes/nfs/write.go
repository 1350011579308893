package nfs

import (
	"context"

	"sessionfs/nodes"
)

// fileSync says that what was written is durable.
const fileSync = 2

// writeFile answers WRITE.
func (r *request) writeFile() {
	o, n := r.object()
	off, count := int64(r.in.u64()), r.in.u32()
	r.in.u32() // how durable it must be: all is
	data := r.in.opaque(maxWrite)
	r.checkArguments()
	file, ok := n.(nodes.Control)
	if !ok {
		r.check(nodes.Deny(n, o.name, "write"))
	}
	if uint32(len(data)) != count || off < 0 {
		panic(nfsInvalid)
	}
	taken := 0
	if count > 0 {
		var answer []byte
		ctx := context.WithoutCancel(r.ctx)
		n, text, errno := o.linesOf(file).write(ctx, data, off)
		r.check(errno)
		r.check(file.Sync(ctx))
		if taken, answer = n, text; len(answer) > 0 {
			r.door.result.Store(&answer)
		}
	}
	r.wcc(o, n)
	r.out.u32(uint32(taken), fileSync)
	r.out.u64(r.door.epoch)
}

// newAttr decodes a sattr3. The times are ignored, and so is a size but 0, which > sends.
func (r *request) newAttr() (to nodes.AttrChange, empty bool) {
	for _, field := range []**uint32{&to.Mode, &to.UID, &to.GID} {
		if r.in.bool() {
			*field = new(r.in.u32())
		}
	}
	if r.in.bool() {
		empty = r.in.u64() == 0
	}
	const timeOfClient = 2
	for range 2 {
		if r.in.u32() == timeOfClient {
			r.in.u64()
		}
	}
	return to, empty
}

// setAttr answers SETATTR.
func (r *request) setAttr() {
	o, n := r.object()
	to, empty := r.newAttr()
	if guarded := r.in.bool(); guarded {
		r.in.u64()
	}
	r.checkArguments()
	_, errno := nodes.SetAttr(r.ctx, n, o.name, to)
	r.check(errno)
	if file, ok := n.(nodes.Control); ok && empty {
		o.linesOf(file).empty()
	}
	r.wcc(o, n)
}

// commit answers COMMIT.
func (r *request) commit() {
	o, n := r.object()
	if file, ok := n.(nodes.Control); ok {
		r.check(file.Sync(context.WithoutCancel(r.ctx)))
	}
	r.wcc(o, n)
	r.out.u64(r.door.epoch)
}

// symlink answers SYMLINK.
func (r *request) symlink() {
	dir, in, name := r.name()
	r.newAttr()
	target := r.in.text()
	r.checkArguments()
	r.ctx = context.WithoutCancel(r.ctx)
	r.check(linksIn(in, name, "symlink").Symlink(r.ctx, target, name))
	r.out.bool(true)
	r.found(dir, name)
	r.wcc(dir, in)
}

// linksIn returns a directory as one in which links are replaced. In others that is refused.
func linksIn(dir nodes.Dir, name, op string) nodes.LinkDir {
	links, ok := dir.(nodes.LinkDir)
	if !ok {
		panic(statusOf(nodes.DenyName(dir, name, op)))
	}
	return links
}

// remove answers REMOVE.
func (r *request) remove() {
	dir, in, name := r.name()
	r.check(linksIn(in, name, "unlink").Remove(r.ctx, name))
	r.wcc(dir, in)
}

// rename answers RENAME.
func (r *request) rename() {
	dir, in, name := r.name()
	to, _, newName := r.name()
	links := linksIn(in, name, "rename")
	if to != dir {
		r.check(nodes.DenyName(in, name, "rename"))
	}
	r.check(links.Rename(context.WithoutCancel(r.ctx), name, newName, 0))
	r.wcc(dir, in)
	r.wcc(dir, in)
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
