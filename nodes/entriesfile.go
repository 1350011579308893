package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// EntriesFile is branches/<id>/entries.jsonl: the entries of a branch as one flat file. As an EntryFile
// does, the node stands for one content, which does not change as long as the session only grows; so the
// kernel may keep its pages, and who has it open while the session is rewritten reads it to its end.
type EntriesFile struct {
	node
	session *sessioncore.Session
	name    string // that .by-id/ has for the branch
	state   sessioncore.BranchState
	open    atomic.Int32              // handles
	last    atomic.Pointer[fuse.Attr] // when it was opened last
}

func makeBranchEntries(d *BranchDir, snap *sessioncore.Snapshot, e sessioncore.Entry) (fusefs.InodeEmbedder, uint64, error) {
	state, err := snap.Branch(e).EntriesState()
	f := &EntriesFile{node: node{view: d.view}, session: d.session, name: d.name, state: state}
	return f, state.Sum, err
}

// find acquires the session and finds the branch in it, with the node's content or else ErrStale; the caller
// releases the snapshot.
func (f *EntriesFile) find() (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, e, err := findBranch(f.session, f.name)
	if err != nil {
		return nil, 0, err
	}
	state, err := snap.Branch(e).EntriesState()
	if err == nil && state != f.state {
		err = fmt.Errorf("%w: the branch %s was rewritten", sessioncore.ErrStale, f.name)
	}
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

func (f *EntriesFile) fillAttr(out *fuse.Attr) error {
	snap, e, err := f.find()
	if err != nil {
		if last := f.last.Load(); last != nil && f.open.Load() > 0 {
			*out = *last // who has it open goes on seeing it
			return nil
		}
		return err
	}
	defer snap.Release()
	f.fill(snap, e, out)
	return nil
}

// fill sets the times as fillEntry does: those of the entry where the branch ends, with something of the
// content below the millisecond.
func (f *EntriesFile) fill(snap *sessioncore.Snapshot, e sessioncore.Entry, out *fuse.Attr) {
	fillFile(out, snap.Stat(), f.state.Size)
	t := snap.Time(e)
	fillTimes(out, t, t.Add(time.Duration(f.state.Sum%1e6)))
}

func (f *EntriesFile) cache() cacheRule { return cacheAttr }

var _ = (fusefs.NodeGetattrer)((*EntriesFile)(nil))

// Getattr tells the size of all entries, and the time of the last.
func (f *EntriesFile) Getattr(_ context.Context, _ fusefs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return f.getattr(f, out)
}

var _ = (fusefs.NodeOpener)((*EntriesFile)(nil))

// Open pins the session. Where the branch is not any more what the kernel was told, it answers ESTALE: the
// kernel looks the path up anew and tries again.
func (f *EntriesFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	snap, e, err := f.find()
	if errors.Is(err, sessioncore.ErrStale) {
		return nil, 0, syscall.ESTALE // nothing that the log should tell
	} else if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	defer snap.Release()
	entries, err := snap.Branch(e).OpenEntries()
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	var attr fuse.Attr
	f.fill(snap, e, &attr)
	f.last.Store(&attr)
	f.open.Add(1)
	return &entriesHandle{file: f, entries: entries}, forReading | fuse.FOPEN_KEEP_CACHE, 0
}

// entriesHandle is an open entries.jsonl.
type entriesHandle struct {
	file    *EntriesFile
	entries *sessioncore.BranchEntries
}

var _ = (fusefs.FileReader)((*entriesHandle)(nil))

// Read reads a part of the branch.
func (h *entriesHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	return readAt(h.entries, dest, off, &h.file.node)
}

var _ = (fusefs.FileReleaser)((*entriesHandle)(nil))

// Release lets the session go.
func (h *entriesHandle) Release(context.Context) syscall.Errno {
	h.file.open.Add(-1)
	h.entries.Close()
	return 0
}
