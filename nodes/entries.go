package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// EntriesDir is entries/: a file for each entry, listed in file order.
type EntriesDir struct {
	snapshotDir
}

func makeEntries(d *snapshotDir) fusefs.InodeEmbedder {
	return &EntriesDir{snapshotDir: newSnapshotDir(d.view, d.session)}
}

func (d *EntriesDir) lookupName(ctx context.Context, snap *sessioncore.Snapshot, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	base, ok := strings.CutSuffix(name, layout.EntrySuffix)
	if !ok {
		return nil, syscall.ENOENT
	}
	e, err := snap.FindName(base)
	if err != nil {
		return nil, syscall.ENOENT
	}
	return d.enterEntry(ctx, name, snap, e, out)
}

// enterEntry makes a child of an entry of the snapshot.
func (d *EntriesDir) enterEntry(ctx context.Context, name string, snap *sessioncore.Snapshot, e sessioncore.Entry, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	state, err := snap.EntryState(e)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	id := stableAttr(d.StableAttr(), kindEntry, name, syscall.S_IFREG)
	id.Gen ^= uint64(state.Size)<<32 ^ uint64(state.Sum) // another content has another identity for the kernel
	child := d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &EntryFile{node: node{view: d.view}, session: d.session, name: strings.TrimSuffix(name, layout.EntrySuffix), state: state}
	})
	fillEntry(snap, e, state, &out.Attr)
	setTimeouts(out, cacheSecond)
	return child, 0
}

func (d *EntriesDir) listIn(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	items := make([]item, snap.Len())
	for e := range items {
		items[e] = d.newItem(kindEntry, snap.Name(sessioncore.Entry(e))+layout.EntrySuffix, syscall.S_IFREG)
		items[e].number = int32(e)
	}
	return items, nil
}

// lookupIn uses the entry number of a listed item if that entry still has the name.
func (d *EntriesDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e := sessioncore.Entry(it.number)
	if it.number == unnumbered || int(e) >= snap.Len() || snap.Name(e)+layout.EntrySuffix != it.name {
		return d.lookupName(ctx, snap, it.name, out)
	}
	return d.enterEntry(ctx, it.name, snap, e, out)
}
