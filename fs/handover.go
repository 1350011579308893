package fs

import (
	"context"
	"errors"
	"path"
	"strings"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/forks"
	"sessionfs/sessioncore/transfer"
)

// HandoverRequest is a branch of a session for another agent.
type HandoverRequest struct {
	// Dir is the directory of the session in the mount, without links.
	Dir string
	// Snapshot is the session, and Entry the end of the branch.
	Snapshot *sessioncore.Snapshot
	Entry    sessioncore.Entry
	// CWD is the working directory of the new session, without links.
	CWD string
	// To is the agent and its directory, which is there.
	To mountopts.AgentDir
}

// Receivers returns the names of the agents that go on with conversations of others.
func Receivers() (names []string) {
	for _, agent := range agents.All() {
		if agent.Receives() {
			names = append(names, agent.Name)
		}
	}
	return append(names, "omp")
}

// HandOver makes a session of another agent with the conversation of a branch, and returns its id, and
// notes for the user about missing parts. No file of the session's own agent changes. A read-only tree refuses it with
// sessioncore.ErrReadOnly.
func (u *Unmounted) HandOver(ctx context.Context, h *HandoverRequest) (id string, notes []string, err error) {
	if u.tree.view.ReadOnly || u.tree.view.Redacted {
		return "", nil, sessioncore.ErrReadOnly
	}
	from, name := u.placeOf(h.Dir)
	given := &forks.SourceBranch{
		Snapshot:   h.Snapshot,
		Entry:      h.Entry,
		IsSubagent: strings.Contains(h.Dir, "/artifacts/"),
		Agent:      from.agentOf(name),
		Foreign:    from.agent,
		CWD:        h.CWD,
	}
	if from.blobs != nil { // else Blobs would be an interface that is not nil
		given.Blobs = from.blobs
	}
	to := &place{agent: agents.Find(h.To.Name), shownIn: layout.Sessions}
	defer to.close()
	opener := &opener{
		Options: mountopts.Options{
			Source:   h.To.Source,
			SourceAs: h.To.SourceAs,
			State:    h.To.State,
		},
		log:    u.log,
		memory: u.tree.view.Memory,
	}
	err = opener.fill(to)
	if err != nil {
		return "", nil, err
	}
	to.runsPrograms()
	if to.forks != nil {
		id, _, err = to.forks.Receive(ctx, given)
		return id, given.Notes, err
	}
	opener.show(to)
	return from.handToOMP(ctx, name, given, to)
}

// placeOf returns the place of a session, by its directory in the mount without links, and the name of its
// file there.
func (u *Unmounted) placeOf(dir string) (p *place, name string) {
	top, below, _ := strings.Cut(dir, "/")
	p = u.tree.place
	switch {
	case top == layout.Archive:
		p = u.tree.archive
	case p.parts != nil:
		agent, rest, _ := strings.Cut(below, "/")
		part := p.partOf(agent)
		if part != nil {
			p = part
			below = rest
		}
	}
	return p, below + layout.SessionSuffix
}

// handToOMP makes a session of omp in the place to, as an import does: from the branch given of the file name of this
// place, which is another agent's or pi's. It returns the id, and notes for the user.
func (p *place) handToOMP(ctx context.Context, name string, given *forks.SourceBranch, to *place) (id string, notes []string, err error) {
	err = given.Check()
	if err != nil {
		return "", nil, err
	}
	entry, _ := given.Snapshot.ID(given.Entry) // Check has found one
	branch := transfer.GivenBranch{
		Foreign: transfer.Foreign{
			Files:     p.files,
			Name:      name,
			Path:      path.Join(p.root, name),
			Temporary: temporaryDir(),
		},
		Source: given.Agent,
		Entry:  entry,
		Check:  given.CheckConversation,
	}
	switch {
	case p.foreign != nil:
		branch.Files = p.foreign.Files
		branch.Format = p.foreign.Format
	case given.Agent != "pi":
		return "", nil, errors.New("its sessions are those of omp already")
	}
	v := to.view
	importer := &transfer.Importer{
		Files:   to.store.Storage(),
		Writer:  v.Writer,
		Listing: v.Listing,
		Blobs:   to.transferred(),
	}
	return importer.Receive(ctx, branch)
}
