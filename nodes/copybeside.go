package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
)

// What is copied to a session's directory goes into the real directory beside the session file, which is made when it is
// missing: the two have the same path in SOURCE and in the mount.

// Create begins the copy of an artifact.
func (d *SessionDir) Create(ctx context.Context, name string, _, mode uint32, out *fuse.EntryOut) (*fusefs.Inode, fusefs.FileHandle, uint32, syscall.Errno) {
	artifacts := d.artifacts()
	if isSessionFile(name) || !artifacts.isOfCopy() || layout.CopiedAs(artifacts.dir, name, true) == layout.NotCopied {
		return nil, nil, 0, d.refuse("create", name)
	}
	child, fh, flags, errno := artifacts.createIn(ctx, &d.node, name, mode, true, out)
	if h, ok := fh.(*copyHandle); ok {
		h.c.dirMode = d.shownMode(ctx)
	}
	return child, fh, flags, errno
}

// shownMode is the mode of the session's directory, which the one beside the session file has too if it is made.
func (d *SessionDir) shownMode(ctx context.Context) uint32 {
	var now fuse.Attr
	if d.fillAttr(ctx, &now) != nil {
		return storage.DirMode
	}
	return now.Mode & dirBits
}

// Mkdir makes artifacts/, or a directory in it.
func (d *SessionDir) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	artifacts := d.artifacts()
	if !artifacts.takesCopies() || !artifacts.isOfCopy() || isSessionFile(name) && name != layout.Artifacts {
		return nil, d.refuse("mkdir", name)
	}
	if name == layout.Artifacts {
		if errno := artifacts.make(ctx, mode); errno != 0 {
			return nil, errno
		}
		return d.Lookup(ctx, name, out)
	}
	if !layout.MayMakeDir(artifacts.dir, name, true) {
		return nil, d.refuse("mkdir", name)
	}
	if ok, _ := d.hasArtifacts(ctx); !ok {
		if errno := artifacts.make(ctx, d.shownMode(ctx)); errno != 0 {
			return nil, errno
		}
	}
	return artifacts.mkdirIn(ctx, &d.node, name, mode, true, out)
}

// unlinkCopy removes a copy under a temporary name, or an artifact that was copied in.
func (d *SessionDir) unlinkCopy(ctx context.Context, name string) syscall.Errno {
	return d.artifacts().unlinkIn(ctx, &d.directory, name)
}

// Rmdir removes a directory of artifacts that was copied in, if it is empty.
func (d *SessionDir) Rmdir(ctx context.Context, name string) syscall.Errno {
	if isSessionFile(name) {
		return d.refuse("rmdir", name)
	}
	return d.artifacts().rmdirIn(ctx, &d.directory, name)
}

var _ = (fusefs.NodeSetattrer)((*SessionDir)(nil))

// Setattr is about the directory beside the session file; what is shown is that of the file.
func (d *SessionDir) Setattr(ctx context.Context, fh fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if ok, err := d.hasArtifacts(ctx); err != nil || !ok {
		return d.denyWrite("setattr", d.path())
	}
	if errno := d.artifacts().setattrDir(ctx, &d.node, in); errno != 0 {
		return errno
	}
	return d.Getattr(ctx, fh, out)
}
