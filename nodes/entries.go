package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// entrySuffix ends the names in entries/.
const entrySuffix = ".json"

// EntriesDir is entries/: a file for each entry, listed in file order.
type EntriesDir struct {
	directory
	lookupCount
	session *sessioncore.Session
}

func makeEntries(d *SessionDir) fusefs.InodeEmbedder {
	return &EntriesDir{directory: directory{node{view: d.view}}, session: d.session}
}

func (d *EntriesDir) fillAttr(out *fuse.Attr) error { return d.fillSessionDir(out, d.session) }

func (d *EntriesDir) cache() cacheRule { return cacheSecond }

var _ = (fusefs.NodeGetattrer)((*EntriesDir)(nil))

// Getattr mirrors the session file.
func (d *EntriesDir) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return d.getattr(d, out)
}

var _ = (fusefs.NodeLookuper)((*EntriesDir)(nil))

// Lookup finds an entry's file.
func (d *EntriesDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	d.n.Add(1)
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+name, err)
	}
	defer snap.Release()
	return d.lookupName(ctx, snap, name, out)
}

func (d *EntriesDir) lookupName(ctx context.Context, snap *sessioncore.Snapshot, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	base, ok := strings.CutSuffix(name, entrySuffix)
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
	id.Gen ^= uint64(state.Size)<<32 ^ uint64(state.Sum) // another content is another file to the kernel
	child := d.child(ctx, id, name, func() fusefs.InodeEmbedder {
		return &EntryFile{node: node{view: d.view}, session: d.session, name: strings.TrimSuffix(name, entrySuffix), state: state}
	})
	fillEntry(snap, e, state, &out.Attr)
	setTimeouts(out, cacheSecond)
	return child, 0
}

var _ = (fusefs.NodeOpendirHandler)((*EntriesDir)(nil))

// OpendirHandle opens the directory for listing.
func (d *EntriesDir) OpendirHandle(context.Context, uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	return d.openSessionListing(d)
}

func (d *EntriesDir) list() ([]item, func(), error) {
	snap, err := d.session.Acquire()
	if err != nil {
		return nil, nil, err
	}
	defer snap.Release()
	self := d.StableAttr()
	items := make([]item, snap.Len())
	for e := range items {
		name := snap.Name(sessioncore.Entry(e)) + entrySuffix
		id := stableAttr(self, kindEntry, name, syscall.S_IFREG)
		items[e] = item{name: name, mode: id.Mode, ino: id.Ino, number: int32(e)}
	}
	return items, nil, nil
}

func (d *EntriesDir) acquire() (*sessioncore.Snapshot, error) { return d.session.Acquire() }

// lookupIn answers from what the session is now: the listing may be older.
func (d *EntriesDir) lookupIn(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	e := sessioncore.Entry(it.number)
	if int(e) >= snap.Len() || snap.Name(e)+entrySuffix != it.name {
		return d.lookupName(ctx, snap, it.name, out)
	}
	return d.enterEntry(ctx, it.name, snap, e, out)
}
