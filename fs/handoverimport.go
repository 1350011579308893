package fs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/forks"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/writer"
)

// HandoverImporter makes sessions of another agent than omp with the conversations of found sessions.
type HandoverImporter struct {
	place     *place
	directory string            // the working directory of all of them, "" for their own
	known     map[string]string // the names of the agent's sessions, by id; nil before the first import
}

// HandoverImporter returns an importer into SOURCE, for the working directory to unless that is "". It is
// nil if SOURCE has sessions of omp or its kin.
func (u *Unmounted) HandoverImporter(to string) (*HandoverImporter, error) {
	p := u.tree.place
	isForeign := p.agent != nil && p.forks != nil
	if !isForeign || !p.agent.Receives() {
		return nil, nil
	}
	if to != "" && !transfer.IsWorkingDirectory(to) {
		return nil, fmt.Errorf("--to: %s has its sessions by their working directories: name one", p.agent.Title)
	}
	return &HandoverImporter{place: p, directory: to}, nil
}

// Import hands a session over, unless the agent has it as it stands. Only an interrupt is an error of its
// own.
func (h *HandoverImporter) Import(ctx context.Context, f transfer.FoundFile) (transfer.ImportOutcome, error) {
	var r transfer.ImportOutcome
	r.Err = h.put(ctx, f, &r)
	if r.Err != nil {
		r.Outcome = transfer.Refused
	}
	return r, ctx.Err()
}

// put hands a session over to the agent of the place, unless that has it, and sets the outcome in r. A session of that
// agent itself is an error.
func (h *HandoverImporter) put(ctx context.Context, f transfer.FoundFile, r *transfer.ImportOutcome) error {
	b, err := f.Branch(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	if b.Agent == h.place.agent {
		return fmt.Errorf("it is a session of %s already: copy its file", b.Agent.Title)
	}
	given := &forks.SourceBranch{
		Snapshot:   b.Snapshot,
		Entry:      b.Entry,
		IsSubagent: b.IsSubagent,
		Agent:      b.Source,
		Foreign:    b.Agent,
		Blobs:      b.Blobs,
	}
	given.CWD, err = h.cwdOf(b)
	if err != nil {
		return err
	}
	given.ID, err = h.place.forks.StableID(given)
	if err != nil {
		return err
	}
	err = h.learnKnown(ctx)
	if err != nil {
		return err
	}
	r.Outcome = writer.Unchanged
	name := h.known[given.ID]
	if name == "" {
		r.Outcome = writer.Added
		_, name, err = h.place.forks.Receive(ctx, given)
		h.known[given.ID] = name
	}
	r.Path = layout.Sessions + "/" + name
	r.Notes = given.Notes
	return err
}

// learnKnown fills h.known with the sessions that the agent has, unless it is filled.
func (h *HandoverImporter) learnKnown(ctx context.Context) error {
	if h.known != nil {
		return nil
	}
	list, err := h.place.view.Listing.Sessions(ctx)
	if err != nil {
		return err
	}
	h.known = map[string]string{}
	for _, info := range list.All() {
		h.known[info.ID] = info.Name()
	}
	return nil
}

// cwdOf returns the working directory of the new session, without links where it is there.
func (h *HandoverImporter) cwdOf(b *transfer.FoundBranch) (string, error) {
	cwd := h.directory
	if cwd == "" {
		header, _, err := b.Snapshot.ReadHeader()
		if err != nil {
			return "", err
		}
		cwd, _ = header.Member("cwd").Text()
	}
	if !transfer.IsWorkingDirectory(cwd) {
		return "", errors.New("its header names no working directory by which to find a place for it: use --to")
	}
	resolved, err := filepath.EvalSymlinks(cwd)
	if err != nil { // it may be one of another machine
		return transfer.CleanDirectory(cwd), nil
	}
	return resolved, nil
}
