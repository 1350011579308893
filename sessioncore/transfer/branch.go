package transfer

import (
	"context"
	"errors"
	"path"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// FoundBranch is the branch of a found session that another agent is to go on with: to the entry that was
// named, else to the leaf.
type FoundBranch struct {
	Snapshot *sessioncore.Snapshot
	Entry    sessioncore.Entry
	Source   string         // the agent's name
	Agent    *agents.Agent  // nil for omp and its kin
	Blobs    document.Blobs // images beside the session, nil for none
	// IsSubagent says that it is a subagent's, by its place.
	IsSubagent bool

	store *sessioncore.Store
}

// Close releases the session.
func (b *FoundBranch) Close() {
	if b.Snapshot != nil {
		b.Snapshot.Release()
	}
	b.store.Close()
}

// Branch opens a found session, of omp and its kin or of another agent. Callers must close it. The error
// wraps sessioncore.ErrNotFound if no entry has the id that was named.
func (f FoundFile) Branch(ctx context.Context) (*FoundBranch, error) {
	if f.Err != nil {
		return nil, f.Err
	}
	b := &FoundBranch{}
	own, err := openContent(ctx, f.files, f.name)
	switch {
	case err == nil:
		err = own.Close()
		b.store = sessioncore.NewStore(f.files)
		b.Blobs = foundBlobs{files: f.files, dir: path.Join(f.agent, "blobs")}
	case errors.Is(err, errNoSession): // in omp's form, but it may be another agent's
		err = f.settle(ctx)
		if err == nil {
			b.Source = f.source
			b.Agent = agents.Find(f.source)
			b.IsSubagent = f.isOrphan
			b.store = f.store(f.name)
		}
	}
	if err != nil {
		return nil, err
	}
	err = b.find(ctx, &f)
	if err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// find reads the session, and finds the end of the branch. It sets the source of a session in omp's form.
func (b *FoundBranch) find(ctx context.Context, f *FoundFile) (err error) {
	b.Snapshot, err = b.store.Session(f.name).Acquire(ctx)
	if errors.Is(err, sessioncore.ErrNotSession) {
		err = errEmpty
	}
	if err != nil {
		return err
	}
	if b.Source == "" {
		b.Source = "omp"
		if b.Snapshot.Dialect() == sessioncore.Pi {
			b.Source = "pi"
		}
	}
	if f.entry != "" {
		b.Entry, err = b.Snapshot.FindBeginning(f.entry)
	} else {
		b.Entry, err = b.Snapshot.Leaf()
	}
	return err
}

// foundBlobs are the blobs in a directory.
type foundBlobs struct {
	files storage.Files
	dir   string
}

// Size implements document.Blobs.
func (b foundBlobs) Size(hash string) (int64, error) {
	st, err := b.files.Stat(path.Join(b.dir, hash))
	return st.Size, err
}

// Open implements document.Blobs.
func (b foundBlobs) Open(hash string) (storage.Object, error) {
	return b.files.Open(path.Join(b.dir, hash))
}
