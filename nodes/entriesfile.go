package nodes

import (
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// EntriesFile is branches/<id>/entries.jsonl: the entries of a branch as one flat file. Like an EntryFile,
// the node stands for one content, which does not change as long as the session only grows. So the
// kernel may keep its pages, and a reader can finish while the session is rewritten. If it is opened
// at the end of a branch, it continues with the entries that are added after that.
type EntriesFile struct {
	node
	session *sessioncore.Session
	name    string // of the branch in .by-id/
	state   sessioncore.BranchState
	line    line
}

// find acquires the session and finds the branch in it. The error is errReplaced if its content is no longer that of the
// node. Callers must release the snapshot.
func (f *EntriesFile) find(ctx context.Context) (*sessioncore.Snapshot, sessioncore.Entry, error) {
	snap, e, err := findBranch(ctx, f.session, f.name)
	if err != nil {
		return nil, 0, err
	}
	state, err := snap.Branch(e).EntriesState(ctx)
	if err == nil && state != f.state {
		err = errReplaced
	}
	if err != nil {
		snap.Release()
		return nil, 0, err
	}
	return snap, e, nil
}

// cache saves the kernel a question for the attributes before each read(2), which are two of three requests of a
// grep.
func (f *EntriesFile) cache() cacheRule { return cacheMoment }

func (f *EntriesFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	ctx = f.line.context(ctx)
	snap, e, err := f.find(ctx)
	if err == nil {
		defer snap.Release()
		f.update(ctx, snap, e)
	}
	if f.line.openAttr(out) {
		return nil // open handles keep their version
	}
	if err != nil {
		return err
	}
	fillEntry(snap, e, f.state.Size, f.state.Sum, out)
	return nil
}

// shown returns the version of the file for a branch that ends at an entry.
func (f *EntriesFile) shown(ctx context.Context, snap *sessioncore.Snapshot, e sessioncore.Entry) (s shown, err error) {
	branch := snap.Branch(e)
	state, err := branch.EntriesState(ctx)
	if err != nil {
		return s, err
	}
	if s.version, err = branch.EntriesDocument(ctx); err == nil {
		fillEntry(snap, e, state.Size, state.Sum, &s.attr)
	}
	return s, err
}

// update makes open handles continue with entries that were added after theirs. e is the last entry of the branch that
// the file's name stands for.
func (f *EntriesFile) update(ctx context.Context, snap *sessioncore.Snapshot, e sessioncore.Entry) {
	f.line.update(ctx, snap, func(goesOn bool) (shown, error) {
		end := e
		if goesOn {
			end = snap.BranchBelow(e)
		}
		s, err := f.shown(ctx, snap, end)
		s.beyond = end != e
		return s, err
	})
}

func (f *EntriesFile) follows() bool { return true }

func (f *EntriesFile) standsFor(ctx context.Context, content uint64) bool {
	if f.state.Sum != content {
		return false
	}
	snap, e, err := f.find(ctx)
	if err != nil {
		return true // the next operation returns the error
	}
	defer snap.Release()
	f.update(ctx, snap, e)
	return f.line.isCurrent(snap, func() bool { return snap.EndsBranch(e) })
}

var _ = (fusefs.NodeOpener)((*EntriesFile)(nil))

// Open pins the session. It returns ESTALE if the branch is no longer what the kernel was told, or if open handles
// have continued beyond it: the kernel then looks up the path again and retries.
func (f *EntriesFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open")
	}
	snap, e, err := f.find(ctx)
	if err != nil {
		return nil, 0, f.fail("open", staleIfGone(err))
	}
	defer snap.Release()
	f.update(ctx, snap, e)
	joined, err := f.line.open(ctx, snap, snap.EndsBranch(e), func() (shown, error) {
		return f.shown(ctx, snap, e)
	})
	if err != nil {
		return nil, 0, f.fail("open", err)
	}
	if !joined {
		return nil, 0, syscall.ESTALE
	}
	return &documentHandle{&f.node, &f.line, nil}, forReading | fuse.FOPEN_KEEP_CACHE, 0
}
