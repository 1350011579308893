package nodes

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/storage"
)

// This file answers what programs do to a directory below sessions/ when they copy files there. Everywhere else it is
// refused.

// isShownName reports whether a name is one of those that a session's directory shows, in a directory that is, or may
// become, the one beside the session's file: whoever copies all that a mount shows must not leave it in SOURCE.
func (d *SourceDir) isShownName(name string) bool {
	if !isSessionFile(name) || !d.isBeside() {
		return false
	}
	if strings.Count(d.dir, "/") <= 1 {
		return true
	}
	_, err := d.storage.Stat(d.dir + layout.SessionSuffix)
	return err == nil
}

// hasNoPlaceFor reports whether SOURCE cannot hold what is copied to a name.
func (d *SourceDir) hasNoPlaceFor(name string, kind layout.Copied) bool {
	return d.view.Rows && kind == layout.CopiedArtifact && !strings.HasSuffix(name, layout.SessionSuffix)
}

// holds returns those of the attributes that SOURCE can hold. The others are ignored: programs that copy set what they find,
// and report an error for each file if they cannot.
func (v *View) holds(a storage.Attributes) storage.Attributes {
	if !v.Rows {
		return a
	}
	a = storage.Attributes{Modified: a.Modified}
	if a.Modified != nil {
		whole := time.Unix(0, *a.Modified).UnixMilli() * int64(time.Millisecond)
		a.Modified = &whole
	}
	return a
}

// copyErr is the error of a storage into which nothing can be copied, or err.
func copyErr(err error) error {
	if errors.Is(err, storage.ErrUnsupported) {
		return fmt.Errorf("%w: nothing can be copied into this SOURCE", syscall.EPERM)
	}
	return err
}

// takesCopies reports whether files can be copied into the directory.
func (d *SourceDir) takesCopies() bool {
	return d.sessions != nil && !d.view.Archived() && !d.view.ReadOnly && !d.view.Redacted
}

// copyPath is where a name of the directory is in its storage.
func (d *SourceDir) copyPath(name string) string { return join(d.dir, name) }

// Create begins the copy of a file.
func (d *SourceDir) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	return d.createIn(ctx, &d.node, name, mode, false, out)
}

// createIn is Create of a child of parent. beside says that the directory is known to be that beside a session.
func (d *SourceDir) createIn(ctx context.Context, parent *node, name string, mode uint32, beside bool, out *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	if !d.takesCopies() {
		return nil, nil, 0, d.refuse("create", name)
	}
	refuse := func(err error) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
		return nil, nil, 0, d.refuseCopy(name, err)
	}
	if d.isShownName(name) {
		return refuse(errShownName)
	}
	kind := layout.CopiedAs(d.dir, name, beside)
	if kind == layout.NotCopied || kind != layout.CopiedSession && d.isBeside() && !d.isOfCopy() {
		return refuse(errNotForCopies)
	}
	if d.hasNoPlaceFor(name, kind) {
		return refuse(errNoArtifacts)
	}
	c, err := d.view.newCopy(ctx, d.storage, d.copyPath(name), kind, mode)
	if err != nil {
		return refuse(err)
	}
	c.mu.Lock()
	err = c.begin(ctx)
	c.mu.Unlock()
	if err == nil {
		err = c.fillAttr(&out.Attr)
	}
	if err != nil {
		c.end()
		return refuse(err)
	}
	if kind == layout.CopiedTemporary {
		c.waitAs(c.name)
	}
	setTimeouts(out, cacheNever)
	return parent.child(ctx, c.id(parent.StableAttr()), name, c.node), &copyHandle{c: c}, fuse.FOPEN_DIRECT_IO, 0
}

// id is the identity of the copy as a file in a directory: each copy is a file of its own.
func (c *copying) id(parent fusefs.StableAttr) fusefs.StableAttr {
	return stableAttr(parent, kindIncoming, strconv.FormatUint(c.number, 10), syscall.S_IFREG)
}

func (c *copying) node() fusefs.InodeEmbedder {
	return &IncomingFile{node: node{view: c.view}, c: c}
}

// refuseCopy records why something cannot be copied in.
func (d *SourceDir) refuseCopy(name string, err error) syscall.Errno {
	what := join(layout.Sessions, d.copyPath(name))
	return d.view.refuse(outside, what, what, copyErr(err))
}

// enterCopy answers a lookup with a copy that has a temporary name; ok is false if there is none for the caller.
func (d *SourceDir) enterCopy(ctx context.Context, parent *node, name string, out *fuse.EntryOut) (child *fusefs.Inode, ok bool) {
	c := d.findCopy(ctx, name)
	if c == nil || c.fillAttr(&out.Attr) != nil {
		return nil, false
	}
	setTimeouts(out, cacheNever)
	return parent.child(ctx, c.id(parent.StableAttr()), name, c.node), true
}

// findCopy returns the copy of the caller that has a temporary name, or nil.
func (d *SourceDir) findCopy(ctx context.Context, name string) *copying {
	if !d.takesCopies() {
		return nil
	}
	c, ok := d.view.copies.find(d.copyPath(name)).(*copying)
	if !ok || d.view.Access.caller(ctx) != nil && userOf(ctx) != c.user {
		return nil
	}
	return c
}

// Mkdir makes a directory for a project, or for artifacts.
func (d *SourceDir) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.mkdirIn(ctx, &d.node, name, mode, false, out)
}

func (d *SourceDir) mkdirIn(ctx context.Context, parent *node, name string, mode uint32, beside bool, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	beside = beside || d.wasMade(d.copyPath(name)+layout.SessionSuffix)
	if !d.takesCopies() || !layout.MayMakeDir(d.dir, name, beside) || d.isBeside() && !d.isOfCopy() {
		return nil, d.refuse("mkdir", name)
	}
	if d.isShownName(name) {
		return nil, d.refuseCopy(name, errShownName)
	}
	if errno := d.at(d.copyPath(name)).make(ctx, mode); errno != 0 {
		return nil, errno
	}
	return d.lookupIn(ctx, parent, name, out)
}

// isBeside reports whether the directory is that of a session's artifacts, or lies in one.
func (d *SourceDir) isBeside() bool { return layout.IsBeside(d.dir) }

// make makes the directory.
func (d *SourceDir) make(ctx context.Context, mode uint32) syscall.Errno {
	if err := d.view.Writer.MakeDir(d.view.Access.forCaller(uninterrupted(ctx)), d.dir, mode&dirBits); err != nil {
		what := join(layout.Sessions, d.dir)
		return d.view.refuse(outside, what, what, copyErr(err))
	}
	d.view.copies.noteStored(ctx, d.storage, d.dir, made{})
	return 0
}

var _ = (fusefs.NodeUnlinker)((*SourceDir)(nil))

// Unlink removes a copy under a temporary name, or an artifact that was copied in. Nothing else can be removed.
func (d *SourceDir) Unlink(ctx context.Context, name string) syscall.Errno {
	return d.unlinkIn(ctx, &d.directory, name)
}

// unlinkIn is Unlink of a child of parent.
func (d *SourceDir) unlinkIn(ctx context.Context, parent *directory, name string) syscall.Errno {
	if c := d.findCopy(ctx, name); c != nil {
		c.end()
		return 0
	}
	if found, err := d.removeMade(ctx, name, false); found {
		return d.view.fail("unlink", parent.path()+"/"+name, err)
	}
	return parent.refuse("unlink", name)
}

var _ = (fusefs.NodeRmdirer)((*SourceDir)(nil))

// Rmdir removes a directory that was made through the mount, if it is empty. mv removes what has the name of a directory
// before it makes it: what it finds there of the session that it has just copied is none.
func (d *SourceDir) Rmdir(ctx context.Context, name string) syscall.Errno {
	if _, err := d.storage.Stat(d.copyPath(name)); storage.IsMissing(err) && d.hasCopied(ctx, name) {
		return syscall.ENOENT
	}
	return d.rmdirIn(ctx, &d.directory, name)
}

// rmdirIn is Rmdir of a child of parent.
func (d *SourceDir) rmdirIn(ctx context.Context, parent *directory, name string) syscall.Errno {
	found, err := d.removeMade(ctx, name, true)
	if errors.Is(err, syscall.ENOTEMPTY) {
		return syscall.ENOTEMPTY
	}
	if found {
		return d.view.fail("rmdir", parent.path()+"/"+name, err)
	}
	return parent.refuse("rmdir", name)
}

var _ = (fusefs.NodeRenamer)((*SourceDir)(nil))

// Rename gives a copy under a temporary name its own. Nothing else can be renamed.
func (d *SourceDir) Rename(ctx context.Context, name string, newParent fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	c := d.findCopy(ctx, name)
	if c == nil {
		return d.refuse("rename", name)
	}
	return d.renameCopy(ctx, c, newParent, newName, flags)
}

// renameCopy renames a copy, into the directory newParent.
func (d *SourceDir) renameCopy(ctx context.Context, c *copying, newParent fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	to, beside := d, false
	switch p := newParent.(type) {
	case *SourceDir:
		to = p
	case *SessionDir:
		if isSessionFile(newName) {
			return d.refuse("rename", newName)
		}
		to, beside = p.artifacts(), true
	default:
		return d.refuse("rename", newName)
	}
	kind := layout.NotCopied
	if to.takesCopies() && to.storage == d.storage {
		kind = layout.CopiedAs(to.dir, newName, beside)
	}
	switch {
	case flags&^renameNoReplace != 0:
		return syscall.EINVAL
	case to.isShownName(newName):
		return to.refuseCopy(newName, errShownName)
	case kind == layout.NotCopied, kind != layout.CopiedSession && (beside || to.isBeside()) && !to.isOfCopy():
		return to.refuseCopy(newName, errNotForCopies)
	case to.hasNoPlaceFor(newName, kind):
		return to.refuseCopy(newName, errNoArtifacts)
	case kind == layout.CopiedTemporary:
		return c.renameTemporary(to.copyPath(newName))
	}
	if flags&renameNoReplace != 0 {
		if _, err := to.storage.Stat(to.copyPath(newName)); err == nil {
			return syscall.EEXIST
		}
	}
	return c.rename(ctx, to.copyPath(newName), kind)
}

// rename gives the copy its name.
func (c *copying) rename(ctx context.Context, name string, kind layout.Copied) syscall.Errno {
	c.mu.Lock()
	errno := c.takeIn(ctx, name, kind)
	over := errno == 0 && c.handles == 0
	c.mu.Unlock()
	switch {
	case over:
		c.end()
	case errno == 0:
		c.view.copies.forgetName(c)
	}
	return errno
}

// renameTemporary gives the copy another temporary name.
func (c *copying) renameTemporary(name string) syscall.Errno {
	c.mu.Lock()
	c.name = name
	c.mu.Unlock()
	c.waitAs(name)
	return 0
}

// waitAs gives the copy a temporary name, and gives up another copy that has it.
func (c *copying) waitAs(name string) {
	if before, ok := c.view.copies.wait(name, c).(*copying); ok && before != c {
		before.giveUp(errNotRenamed)
	}
}

var _ = (fusefs.NodeSetattrer)((*SourceDir)(nil))

// Setattr sets the mode, owner and times of a directory that was made through the mount. Of any other one explicit times
// are ignored, as programs that copy set them for each directory that they come through.
func (d *SourceDir) Setattr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if errno := d.setattrDir(ctx, &d.node, in); errno != 0 {
		return errno
	}
	return d.Getattr(ctx, fh, out)
}

// setattrDir is Setattr without the answer, of the node that shows the directory.
func (d *SourceDir) setattrDir(ctx context.Context, n *node, in *fuse.SetAttrIn) syscall.Errno {
	const now = fuse.FATTR_ATIME_NOW | fuse.FATTR_MTIME_NOW
	if !d.takesCopies() {
		return n.denyWrite("setattr", n.path())
	}
	if err := d.view.Access.admit(ctx, d, access.Search); err != nil {
		return d.view.fail("setattr", n.path(), err)
	}
	st, err := d.storage.Stat(d.dir)
	if err != nil {
		return d.view.fail("setattr", n.path(), staleIfGone(err))
	}
	a, err := attributesOf(d.view.Access.caller(ctx), in, st)
	if err != nil {
		return d.view.fail("setattr", n.path(), err)
	}
	a = d.view.holds(a).Without(st)
	if _, ok := d.view.copies.findMade(d.dir, st.Token); ok {
		return d.view.fail("setattr", n.path(), d.storage.SetAttributes(d.dir, a))
	}
	if a.Mode != nil || a.UID != nil || a.GID != nil || in.Valid&now != 0 {
		return n.denyWrite("setattr", n.path())
	}
	return 0
}

// setMade sets attributes of a file that was copied in. It reports whether it is one. A file that was not has them already,
// if a program that copies sets what another copy has.
func (f *SourceFile) setMade(ctx context.Context, in *fuse.SetAttrIn) (bool, error) {
	if _, ok := in.GetSize(); ok || !f.copies {
		return false, nil
	}
	st, err := f.stat()
	if err != nil {
		return true, err
	}
	c := f.view.Access.caller(ctx)
	if c != nil {
		if err := mayFile(c, f.storage, f.root, f.file, &st, 0); err != nil {
			return true, err
		}
	}
	a, err := attributesOf(c, in, st)
	if a = f.view.holds(a).Without(st); err != nil || a == (storage.Attributes{}) {
		return true, err
	}
	m, _ := f.view.copies.findMade(f.file, f.object)
	if m.kind == layout.NotCopied || m.grown {
		return false, nil
	}
	err = f.storage.SetAttributes(f.file, a)
	if now, statErr := f.stat(); statErr == nil {
		m.token = now.Token
		f.view.copies.noteMade(ctx, f.file, m)
	}
	return true, err
}
