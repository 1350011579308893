package nodes

import (
	"context"
	"fmt"
	"path"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
)

const leafName = "leaf"

// maxPendingLinks is how many links wait in a session's directory to be renamed to leaf: tools make one at
// a time, and what they leave behind must not add up.
const maxPendingLinks = 64

// pendingLinks are links that a tool made under a temporary name. They live in memory, are not listed, and
// go when they are renamed to leaf or removed.
type pendingLinks map[string]string

// pendingTarget returns the target of a link that waits under that name.
func (d *SessionDir) pendingTarget(name string) (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	target, ok := d.pending[name]
	return target, ok
}

var _ = (fusefs.NodeSymlinker)((*SessionDir)(nil))

// Symlink branches where it makes leaf itself; else it makes a link that waits to be renamed to leaf.
func (d *SessionDir) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if name == leafName {
		if errno := d.branch(ctx, target, true); errno != 0 {
			return nil, errno
		}
		return d.Lookup(ctx, name, out)
	}
	if isSessionFile(name) {
		return nil, syscall.EEXIST
	}
	d.mu.Lock()
	if d.pending == nil {
		d.pending = pendingLinks{}
	}
	full := len(d.pending) >= maxPendingLinks
	if !full {
		d.pending[name] = target
	}
	d.mu.Unlock()
	if full {
		return nil, d.view.deny("symlink", d.path()+"/"+name, syscall.ENOSPC, "too many links wait to be renamed to leaf")
	}
	return d.Lookup(ctx, name, out)
}

var _ = (fusefs.NodeUnlinker)((*SessionDir)(nil))

// Unlink of leaf puts the position before the first entry; a waiting link goes.
func (d *SessionDir) Unlink(ctx context.Context, name string) syscall.Errno {
	d.mu.Lock()
	_, waiting := d.pending[name]
	delete(d.pending, name)
	d.mu.Unlock()
	switch {
	case waiting:
		return 0
	case name != leafName:
		return d.refuse("unlink", name)
	}
	if err := d.view.Writer.ResetLeaf(uninterrupted(ctx), d.session); err != nil {
		return d.refused(err)
	}
	return 0
}

var _ = (fusefs.NodeRenamer)((*SessionDir)(nil))

// Rename of a waiting link to leaf branches. Nothing else can be renamed.
func (d *SessionDir) Rename(ctx context.Context, name string, newParent fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	target, waiting := d.pendingTarget(name)
	if !waiting || newName != leafName || newParent.EmbeddedInode() != d.EmbeddedInode() {
		return d.refuse("rename", name)
	}
	if flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL
	}
	if errno := d.branch(ctx, target, flags&unix.RENAME_NOREPLACE != 0); errno != 0 {
		return errno
	}
	d.mu.Lock()
	delete(d.pending, name)
	d.mu.Unlock()
	return 0
}

// branch moves the leaf to what target names; isNew refuses where there is a leaf.
func (d *SessionDir) branch(ctx context.Context, target string, isNew bool) syscall.Errno {
	id, errno := d.branchPoint(target, isNew)
	if errno != 0 {
		return errno
	}
	if err := d.view.Writer.MoveLeaf(uninterrupted(ctx), d.session, id); err != nil {
		return d.refused(fmt.Errorf("%s: %w", target, err))
	}
	return 0
}

// branchPoint returns the id that target names.
func (d *SessionDir) branchPoint(target string, isNew bool) (id string, errno syscall.Errno) {
	snap, err := d.session.Acquire()
	if err != nil {
		return "", d.refused(err)
	}
	defer snap.Release()
	if isNew {
		leaf, err := snap.Leaf()
		if err != nil {
			return "", d.refused(err)
		}
		if leaf != sessioncore.NoEntry {
			return "", syscall.EEXIST
		}
	}
	e, err := leafTarget(snap, strings.TrimSuffix(path.Base(d.session.Name()), sessionSuffix), target)
	if err != nil {
		return "", d.refused(fmt.Errorf("%s: %w", target, err))
	}
	if e == sessioncore.NoEntry {
		return "", d.refused(fmt.Errorf("%s: %w", target, sessioncore.ErrNotFound))
	}
	id, ok := snap.ID(e)
	if !ok {
		return "", d.refused(fmt.Errorf("%s: %w: the entry has no id", target, sessioncore.ErrNotFound))
	}
	return id, 0
}

func (d *SessionDir) refused(err error) syscall.Errno {
	return d.view.refuse(d.session.Name(), leafName, d.path()+"/"+leafName, err)
}

// PendingLink is a link that waits to be renamed to leaf. The kernel goes on using the node under that
// name, so that it then shows the leaf.
type PendingLink struct {
	LeafLink
	dir  *SessionDir
	name string
}

func (l *PendingLink) shown() (string, sessioncore.Stat, error) {
	if target, ok := l.dir.pendingTarget(l.name); ok {
		st, err := l.session.Probe()
		return target, st, err
	}
	return l.target()
}

func (l *PendingLink) fillAttr(out *fuse.Attr) error {
	target, st, err := l.shown()
	if err != nil {
		return err
	}
	fillLink(out, st, target)
	return nil
}

var _ = (fusefs.NodeGetattrer)((*PendingLink)(nil))

// Getattr tells the length of the target.
func (l *PendingLink) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return l.getattr(l, out)
}

var _ = (fusefs.NodeReadlinker)((*PendingLink)(nil))

// Readlink returns the target that the link was made with, or that of leaf once it is leaf.
func (l *PendingLink) Readlink(context.Context) ([]byte, syscall.Errno) {
	target, _, err := l.shown()
	if err != nil {
		return nil, l.view.fail("readlink", l.path(), staleIfGone(err))
	}
	return []byte(target), 0
}
