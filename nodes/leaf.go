package nodes

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// LeafLink is leaf: a link to the current entry, or to tree before the first entry. A link that
// waits to be renamed to leaf is one too: a door may keep the node under the new name.
type LeafLink struct {
	targetLink
	waits bool // it was made under a temporary name
}

// leafPath returns the target of leaf.
func leafPath(snap *sessioncore.Snapshot) (target, error) {
	leaf, err := snap.Leaf()
	if err != nil {
		return target{}, err
	}
	to := target{path: layout.Tree, st: snap.Stat()}
	if leaf != sessioncore.NoEntry {
		to.path = layout.EntryPath(snap, leaf)
	}
	return to, nil
}

// Waits reports whether the link is about to be renamed: a door must keep the unused node.
func (l *LeafLink) Waits() bool { return l.waits }

const leafName = "leaf"

// Links of tools under temporary names are kept in memory until they are renamed or removed.

// maxPendingLinks bounds the pending links of a session's directory, of up to 4 KiB each. Tools
// make one at a time; above the bound all are dropped, as they were left behind.
const maxPendingLinks = 64

// pendingTarget returns the target of the pending link of that name.
func (d *SessionDir) pendingTarget(name string) (target string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	target, ok = d.pending[name]
	return target, ok
}

// addPending adds a pending link and reports whether there was none of that name; otherwise it changes
// nothing. Above maxPendingLinks it drops all others.
func (d *SessionDir) addPending(name, target string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, waiting := d.pending[name]
	if waiting {
		return false
	}
	if d.pending == nil || len(d.pending) == maxPendingLinks {
		d.pending = map[string]string{}
	}
	d.pending[name] = target
	return true
}

// removePending removes a pending link and reports whether there was one.
func (d *SessionDir) removePending(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.pending[name]
	delete(d.pending, name)
	return ok
}

// renameNoReplace is RENAME_NOREPLACE of renameat2(2): it fails if the name exists.
const renameNoReplace = 1

// leafHidden is how long leaf does not exist after it was removed: long enough for a tool
// that removes a link before it makes the new one.
const leafHidden = time.Second

// hasLeaf reports whether leaf exists.
func (d *SessionDir) hasLeaf(context.Context) Presence {
	return presentIf(time.Now().UnixNano() >= d.leafBack.Load())
}

// hideLeaf hides leaf for leafHidden. It returns false if leaf is hidden already, also by a caller at the same
// time.
func (d *SessionDir) hideLeaf() bool {
	now := time.Now()
	back := d.leafBack.Load()
	if now.UnixNano() < back {
		return false
	}
	nextBack := now.Add(leafHidden).UnixNano()
	return d.leafBack.CompareAndSwap(back, nextBack)
}

// Symlink moves the leaf if name is leaf, and fails with EEXIST if leaf exists. Any other name that is free
// becomes a pending link.
func (d *SessionDir) Symlink(ctx context.Context, target, name string) syscall.Errno {
	switch {
	case d.view.unchangeable() != nil:
		return DenyName(d, name, "symlink")
	case name == leafName:
		return d.branch(ctx, target, true)
	case sessionFiles.has(name) || !d.addPending(name, target):
		return syscall.EEXIST
	}
	return 0
}

// Remove writes nothing if name is leaf: rm -r must not rewind the session, and a tool that
// replaces the link makes the new one a moment later. It removes a pending link.
func (d *SessionDir) Remove(_ context.Context, name string) syscall.Errno {
	switch {
	case d.view.unchangeable() != nil:
		return DenyName(d, name, "unlink")
	case d.removePending(name):
		return 0
	case name != leafName:
		return DenyName(d, name, "unlink")
	case !d.hideLeaf():
		return syscall.ENOENT
	}
	return 0
}

// Rename moves the leaf if a pending link is renamed to leaf. It refuses all else. The pending link stays after
// an error, so that a tool can remove it.
func (d *SessionDir) Rename(ctx context.Context, name, newName string, flags uint32) syscall.Errno {
	target, waiting := d.pendingTarget(name)
	if d.view.unchangeable() != nil || !waiting || newName != leafName {
		return DenyName(d, name, "rename")
	}
	if flags&^renameNoReplace != 0 {
		return syscall.EINVAL
	}
	errno := d.branch(ctx, target, flags&renameNoReplace != 0)
	if errno != 0 {
		return errno
	}
	d.removePending(name)
	return 0
}

// branch moves the leaf to the entry of target. With isNew it fails with EEXIST if leaf exists. last-error has
// the reason of another failure, and is cleared by a success.
func (d *SessionDir) branch(ctx context.Context, target string, isNew bool) syscall.Errno {
	if isNew && d.hasLeaf(ctx) == Listed {
		return syscall.EEXIST
	}
	defer d.leafBack.Store(0) // the tool that removed leaf has made a new link, accepted or not
	id, err := d.branchPoint(ctx, target)
	if err == nil {
		err = d.view.Writer.MoveLeaf(uninterrupted(ctx), d.session, id)
	}
	if err != nil {
		return d.refused(fmt.Errorf("%s: %w", target, err))
	}
	d.view.clearRefusal(d.session.Name())
	return 0
}

// branchPoint returns the id of the entry of target, nil for the position before the first entry.
func (d *SessionDir) branchPoint(ctx context.Context, target string) (*string, error) {
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	e, err := layout.FindLeaf(snap, target)
	if err != nil || e == sessioncore.NoEntry {
		return nil, err
	}
	id, ok := snap.ID(e)
	if !ok {
		return nil, fmt.Errorf("%w: the entry has no id", sessioncore.ErrNotFound)
	}
	return &id, nil
}

func (d *SessionDir) refused(err error) syscall.Errno {
	return d.view.refuse(d.session.Name(), leafName, d.nameIn(leafName), err)
}

// newPendingLink returns the pending link of a name; after a rename it shows the leaf.
func newPendingLink(d *SessionDir, name string) *LeafLink {
	leaf := inSession(d.session, leafPath)
	find := func(ctx context.Context) (target, error) {
		path, isPending := d.pendingTarget(name)
		if !isPending { // it was renamed to leaf
			return leaf(ctx)
		}
		st, err := d.session.Probe(ctx)
		return target{path: path, st: st}, err
	}
	return &LeafLink{waits: true, targetLink: targetLink{node: d.file(), find: find}}
}
