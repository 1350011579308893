package main

import (
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/source"
)

// goOnIn returns the command line of another agent, with a new session that has the conversation of a session up to an
// entry, the leaf if none is named. All that may refuse the start is asked before the session is made.
func (p *picker) goOnIn(ctx context.Context, agent string, at source.NamedSession) (*resumption, error) {
	to, err := p.receiver(agent)
	if err != nil {
		return nil, err
	}
	planned, err := p.plannedIn(ctx, agent, at.Dir)
	if err != nil {
		return nil, err
	}
	err = p.mayStart(ctx, planned)
	if err != nil {
		return nil, err
	}
	err = p.mayHandOver(ctx, agent, at)
	if err != nil {
		return nil, err
	}
	id, err := p.handOver(ctx, to, at, planned.cwd)
	if err != nil {
		return nil, err
	}
	made, err := p.resumptionBy(to, id, planned.cwd)
	if err != nil {
		return nil, err
	}
	made.program = planned.program
	return made, nil
}

// plannedIn returns the command line of another agent in the working directory of a session, before there is a new
// session for it. It is an error if the program or the working directory is not there.
func (p *picker) plannedIn(ctx context.Context, agent, session string) (*resumption, error) {
	h, err := p.header(ctx, session)
	if err != nil {
		return nil, err
	}
	r := &resumption{
		agent:    agent,
		id:       h.ID,
		isUnmade: true,
		cwd:      h.CWD,
		command:  resumeProgram(agent),
	}
	err = p.findProgram(r)
	if err != nil {
		return nil, err
	}
	return r, p.checkCWD(r)
}

// receiver returns the directory of an agent that goes on with conversations of others: the shown one, else the usual
// one. It refuses an agent that does not, and one without a directory.
func (p *picker) receiver(agent string) (mountopts.AgentDir, error) {
	if !slices.Contains(fs.Receivers(), agent) {
		return mountopts.AgentDir{}, refuse(exitUsage, "%s: --in %s: only %s can go on with sessions of other agents",
			p.console.name, names.Visible(agent), agents.OneOf(fs.Receivers()))
	}
	to := source.Usual(agent, os.Getenv)
	shown := slices.IndexFunc(p.src.Agents, func(a mountopts.AgentDir) bool {
		return a.Name == agent
	})
	if shown >= 0 {
		to = p.src.Agents[shown]
	}
	if to.Source == "" || !source.IsDir(to.Source) {
		return to, refuse(exitFailure, "%s: %s has no directory here yet (%s): start it once",
			p.console.name, agent, names.Visible(to.Source))
	}
	return to, nil
}

// handOver makes a session of another agent in the working directory cwd, and returns its id. It prints what the new
// session lacks.
func (p *picker) handOver(
	ctx context.Context, to mountopts.AgentDir, at source.NamedSession, cwd string,
) (id string, err error) {
	cwd, err = filepath.EvalSymlinks(cwd)
	if err != nil {
		return "", err
	}
	snap, end, err := p.endOf(ctx, at)
	if err != nil {
		return "", err
	}
	defer snap.Release()
	id, notes, err := p.src.HandOver(ctx, &fs.HandoverRequest{
		Dir:      at.Dir,
		Snapshot: snap,
		Entry:    end,
		CWD:      cwd,
		To:       to,
	})
	switch {
	case errors.Is(err, sessioncore.ErrReadOnly):
		return "", refuse(exitFailure, "%s: %s", p.console.name, syscall.EROFS)
	case err != nil:
		return "", refuse(exitFailure, "%s: %s", p.console.name, reasonOf(err))
	}
	for _, note := range notes {
		fmt.Fprintf(p.console.err, "sessionfs: %s: %s\n", p.console.name, names.Visible(note))
	}
	return id, nil
}

// mayHandOver returns an error unless another agent may be sent the words of a session as its own
// conversation. Where another person may have written them, the user is asked, at a terminal.
func (p *picker) mayHandOver(ctx context.Context, agent string, at source.NamedSession) error {
	why := p.strangeness(at)
	if why == "" {
		return nil
	}
	return p.ask(ctx, &question{
		said:     fmt.Sprintf("%s, and %s is sent all that it says as its own conversation", names.Visible(why), agent),
		question: "Hand it over?",
		unasked:  "it is not handed over; read it first, and put its file among the sessions of its agent",
		refused:  "it is not handed over",
	})
}

// strangeness returns a sign of another person as the writer of a session, "" for none.
func (p *picker) strangeness(at source.NamedSession) string {
	owner := p.agent(at.Dir)
	isOwner := func(a mountopts.AgentDir) bool { return source.IsSame(a.Source, owner.Source) }
	isOwn := owner.Source != "" && slices.ContainsFunc(source.AgentDirs(os.Getenv), isOwner)
	if !isOwn {
		return at.Dir + " is in no directory of an agent of yours"
	}
	file, err := p.src.FileOf(at.Dir)
	if err != nil { // the session is in a database of the agent
		return ""
	}
	info, err := os.Lstat(file)
	if err != nil { // the agent has its sessions in other files
		return ""
	}
	return ownedByOther(file, info)
}

// ownedByOther returns the reason against a file of another user, "" for none.
func ownedByOther(file string, info iofs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if ok && int(st.Uid) != os.Geteuid() {
		return fmt.Sprintf("%s belongs to another user (%d)", file, st.Uid)
	}
	return ""
}
