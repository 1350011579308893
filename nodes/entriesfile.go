package nodes

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// EntriesFile is branches/<id>/entries.jsonl: the entries of a branch as one flat file. As an EntryFile
// does, the node stands for one content, which does not change as long as the session only grows; so the
// kernel may keep its pages, and who has it open while the session is rewritten reads it to its end. Opened
// at the end of a branch it goes on with the entries that come after that.
type EntriesFile struct {
	node
	session *sessioncore.Session
	name    string // that .by-id/ has for the branch
	state   sessioncore.BranchState
	line    line[*sessioncore.BranchEntries]
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
		err = fmt.Errorf("%w: the branch %s was rewritten", storage.ErrStale, f.name)
	}
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

func (f *EntriesFile) fillAttr(out *fuse.Attr) error {
	snap, e, err := f.find()
	if err == nil {
		defer snap.Release()
		f.update(snap, e)
	}
	if f.line.openAttr(out) {
		return nil // who has it open goes on seeing it
	}
	if err != nil {
		return err
	}
	fillBranchEntries(snap, e, f.state, out)
	return nil
}

// fillBranchEntries sets the times as fillEntry does: those of the entry where the branch ends, with something of the
// content below the millisecond.
func fillBranchEntries(snap *sessioncore.Snapshot, e sessioncore.Entry, state sessioncore.BranchState, out *fuse.Attr) {
	fillFile(out, snap.Stat(), state.Size)
	t := snap.Time(e)
	fillTimes(out, t, t.Add(time.Duration(state.Sum%1e6)))
}

// shown is the branch that ends in an entry.
func (f *EntriesFile) shown(snap *sessioncore.Snapshot, e sessioncore.Entry) (s shown[*sessioncore.BranchEntries], err error) {
	branch := snap.Branch(e)
	state, err := branch.EntriesState()
	if err != nil {
		return s, err
	}
	if s.version, err = branch.OpenEntries(); err == nil {
		fillBranchEntries(snap, e, state, &s.attr)
	}
	return s, err
}

// update goes on with the entries that came after those that are shown to who has the file open. e is where
// the branch ends that the file's name stands for.
func (f *EntriesFile) update(snap *sessioncore.Snapshot, e sessioncore.Entry) {
	f.line.update(snap, func(goesOn bool) (shown[*sessioncore.BranchEntries], error) {
		end := e
		if goesOn {
			end = snap.BranchBelow(e)
		}
		s, err := f.shown(snap, end)
		s.beyond = end != e
		return s, err
	})
}

func (f *EntriesFile) follows() bool { return true }

func (f *EntriesFile) standsFor(content uint64) bool {
	if f.state.Sum != content {
		return false
	}
	snap, e, err := f.find()
	if err != nil {
		return true // whoever asks will hear of it
	}
	defer snap.Release()
	f.update(snap, e)
	return f.line.isCurrent(snap, func() bool { return snap.EndsBranch(e) })
}

var _ = (fusefs.NodeOpener)((*EntriesFile)(nil))

// Open pins the session. Where the branch is not any more what the kernel was told, or those who have the
// file open went on with it, it answers ESTALE: the kernel looks the path up anew and tries again.
func (f *EntriesFile) Open(_ context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.view.deny("open", f.path(), syscall.EPERM, whyReadOnly)
	}
	snap, e, err := f.find()
	if errors.Is(err, storage.ErrStale) {
		return nil, 0, syscall.ESTALE // nothing that the log should tell
	} else if err != nil {
		return nil, 0, f.view.fail("open", f.path(), staleIfGone(err))
	}
	defer snap.Release()
	f.update(snap, e)
	joined, err := f.line.open(snap, snap.EndsBranch(e), func() (shown[*sessioncore.BranchEntries], error) {
		return f.shown(snap, e)
	})
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	if !joined {
		return nil, 0, syscall.ESTALE
	}
	return &entriesHandle{file: f}, forReading | fuse.FOPEN_KEEP_CACHE, 0
}

// entriesHandle is an open entries.jsonl.
type entriesHandle struct{ file *EntriesFile }

var _ = (fusefs.FileReader)((*entriesHandle)(nil))

// Read reads a part of the branch. The kernel asks in whole pages and knows the size, so that it comes to
// ask for what lies behind the end only when it was told that there is more.
func (h *entriesHandle) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	f := h.file
	return f.line.read(dest, off, &f.node, func() {})
}

var _ = (fusefs.FileReleaser)((*entriesHandle)(nil))

// Release lets the session go.
func (h *entriesHandle) Release(context.Context) syscall.Errno {
	h.file.line.release()
	return 0
}
