package transfer

import (
	"context"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/document"
)

// GivenBranch is a branch of a session for an Importer that hands it over. Its Format is nil for one of pi.
type GivenBranch struct {
	Foreign
	Source string // the name of its agent
	Entry  string // the end of the branch
	// Check returns an error for a session with another conversation.
	Check func(ctx context.Context, made *sessioncore.Snapshot, blobs document.Blobs) error
}

// Receive makes a session of omp with a branch of another agent's, as an import of that branch does, but a
// new one each time. It returns the session's id, and the notes of the import.
func (im *Importer) Receive(ctx context.Context, of GivenBranch) (id string, notes []string, err error) {
	f := FoundFile{
		files:    of.Files,
		name:     of.Name,
		source:   of.Source,
		how:      of.Format,
		path:     of.Path,
		entry:    of.Entry,
		handover: agents.NewUUID(),
		from:     &Sources{temporary: of.Temporary},
	}
	c, err := im.made(ctx, f, f.name)
	if err != nil {
		return "", nil, err
	}
	defer c.Close()
	err = c.check(ctx, of.Check)
	if err != nil {
		return "", nil, err
	}
	name, err := im.place(ctx, f, c)
	if err != nil {
		return "", nil, err
	}
	var r ImportOutcome
	beside := func() error { return im.artifacts(ctx, f, name, &r) }
	err = im.session(ctx, storedSession{found: f, content: c, name: name, outcome: &r}, beside)
	id, _ = c.id()
	return id, r.Notes, err
}

// check calls f with a session that was made and is not in the store yet.
func (c *openSession) check(
	ctx context.Context, f func(ctx context.Context, made *sessioncore.Snapshot, blobs document.Blobs) error,
) error {
	store := sessioncore.NewStore(c.made)
	defer store.Close()
	store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	snap, err := store.Session(madeName).Acquire(ctx)
	if err != nil {
		return err
	}
	defer snap.Release()
	return f(ctx, snap, foundBlobs{files: c.made, dir: "blobs"})
}
