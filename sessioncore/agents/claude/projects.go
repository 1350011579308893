package claude

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

// Projects shows Claude Code's projects with all subagents in PROJECT/ID/subagents/, as of newer
// clients. Older clients write agent-ID.jsonl beside the session that its records name, and the
// oldest ones write the records of subagents into the session's file, which appears again as
// sidechain-UUID.jsonl for each of them. A subagent without its session is a session of its own,
// PROJECT/agent-ID.jsonl.
type Projects struct {
	agents.Renamed

	projects agents.Cached[*project]
	inside   agents.Inside         // the subagents in sessions' files, by their first records
	firsts   agents.Cached[string] // of first records: a session's uuid, or a subagent's session
	ages     agents.Cached[bool]   // whether one of the oldest clients may have written a file
	inner    agents.Inner          // directories of subagents without their session

	mu    sync.Mutex            // guards forks
	forks map[string]comparison // by the names of sessions
}

var _ agents.Orphans = (*Projects)(nil)

// errUnknown keeps a fact out of a cache, as the file does not tell it yet.
var errUnknown = errors.New("not known yet")

// NewProjects returns the projects in files.
func NewProjects(files storage.Files) *Projects {
	p := &Projects{
		inside: agents.Inside{
			May:      mayHaveChains,
			InnerKey: innerKey,
			Share:    newSharing,
		},
		forks: map[string]comparison{},
	}
	p.firsts.OfBeginning = true
	p.ages.OfBeginning = true
	p.Raw = files
	p.Real = p.real
	return p
}

// List implements storage.Files. The names in a project do not depend on the records of its sessions, so that
// listing it reads none of them.
func (p *Projects) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return p.listOnly(dir, only, f)
	}
	at := parsePath(dir)
	switch at.level {
	case rootLevel, otherLevel:
		return p.Raw.List(dir, nil, f)
	case subagentLevel, nestedLevel:
		return p.listNested(dir, &at, f)
	}
	in, err := p.project(at.project)
	if err != nil {
		return err
	}
	switch at.level {
	case projectLevel:
		return p.listProject(in, f)
	case entryLevel:
		return p.listSession(in, &at, f)
	default:
		return p.listSubagents(in, &at, f)
	}
}

// listOnly lists some names in a directory, without the missing ones.
func (p *Projects) listOnly(dir string, only []string, f func(storage.Item) bool) error {
	at := parsePath(dir)
	isShownElsewhere := false // a name may be shown without a file, or the other way round
	switch at.level {
	case projectLevel:
		isShownElsewhere = slices.ContainsFunc(only, isSubagent)
	case entryLevel, subagentsLevel:
		isShownElsewhere = true
	}
	if isShownElsewhere {
		return storage.ListOnly(p, dir, only, f)
	}
	return p.Raw.List(dir, only, f)
}

// listProject lists a project: its files but the subagents with a session, a directory for each session, which
// is missing when its state is asked for if it has no subagents, and the subagents without their session.
func (p *Projects) listProject(in *project, f func(storage.Item) bool) error {
	added := make([]storage.Item, 0, len(in.agents)+len(in.lost.Files))
	for session := range in.agents {
		state := func() (storage.Stat, error) {
			if !p.hasSubagents(in, session) { // as most sessions
				return storage.Stat{}, fs.ErrNotExist
			}
			return p.Stat(path.Join(in.name, session))
		}
		added = append(added, storage.Item{Name: session, Kind: storage.KindDir, State: state})
	}
	for name := range in.lost.Files {
		added = append(added, p.shownItem(in.name, name, storage.KindFile))
	}
	isShown := func(item storage.Item) bool { return !in.isMoved(item.Name) }
	return p.listWith(in.name, isShown, added, f)
}

// listSession lists the directory of a session, which may exist only because of its subagents.
func (p *Projects) listSession(in *project, at *shownPath, f func(storage.Item) bool) error {
	dir := path.Join(at.project, at.entry)
	var added []storage.Item
	if p.hasSubagents(in, at.entry) {
		added = append(added, p.shownItem(dir, subagents, storage.KindDir))
	}
	isShown := func(storage.Item) bool { return true }
	return p.listWith(dir, isShown, added, f)
}

// listSubagents lists the subagents of a session: those in their directory, and those that clients write elsewhere.
func (p *Projects) listSubagents(in *project, at *shownPath, f func(storage.Item) bool) error {
	dir := path.Join(at.project, at.entry, subagents)
	var added []storage.Item
	for _, name := range p.subagentsOf(in, at.entry) {
		added = append(added, p.shownItem(dir, name, storage.KindFile))
	}
	isShown := func(item storage.Item) bool { return !in.isLost(dir, item) }
	return p.listWith(dir, isShown, added, f)
}

// listNested lists a directory below that of a session's subagents: all of the client's but the lost subagents. Where the
// project cannot be read, none are known to be lost.
func (p *Projects) listNested(dir string, at *shownPath, f func(storage.Item) bool) error {
	in, err := p.project(at.project)
	if err != nil {
		return p.Raw.List(dir, nil, f)
	}
	return p.Raw.List(dir, nil, func(item storage.Item) bool {
		return in.isLost(dir, item) || f(item)
	})
}

// shownItem returns the item of a name that the client's directory lacks.
func (p *Projects) shownItem(dir, name string, kind storage.Kind) storage.Item {
	state := func() (storage.Stat, error) { return p.Stat(path.Join(dir, name)) }
	return storage.Item{Name: name, Kind: kind, State: state}
}

// listWith lists the shown items of the client's directory, and behind them the added ones whose names are not
// in it. The directory may be missing if there are added items.
func (p *Projects) listWith(dir string, isShown func(storage.Item) bool, added []storage.Item, f func(storage.Item) bool) error {
	inDir := map[string]bool{}
	goesOn := true
	err := p.Raw.List(dir, nil, func(item storage.Item) bool {
		inDir[item.Name] = true
		if isShown(item) {
			goesOn = f(item)
		}
		return goesOn
	})
	isFailed := err != nil && !storage.IsMissing(err)
	if isFailed || !goesOn {
		return err
	}
	for _, item := range added {
		if inDir[item.Name] {
			continue
		}
		err = nil // the shown directory is not missing
		if !f(item) {
			break
		}
	}
	return err
}

// isLost reports whether the project shows an item of a directory as a session of its own.
func (in *project) isLost(dir string, item storage.Item) bool {
	return in.lost.Has(path.Join(dir, item.Name))
}

// Orphan implements agents.Orphans. A subagent beside the sessions keeps its name, one in the directory of a session
// that is gone has a new one.
func (p *Projects) Orphan(name string) (shown string, ok bool) {
	dir, below, _ := strings.Cut(name, "/")
	in, err := p.project(dir)
	if err != nil || !isSubagent(path.Base(name)) {
		return "", false
	}
	isBesideSessions := !strings.Contains(below, "/")
	if isBesideSessions {
		return name, !in.isMoved(below)
	}
	base := in.lost.NameOf(name)
	return path.Join(dir, base), base != ""
}

// Stat implements storage.Files. The state of a project changes with the directories of subagents
// without their session.
func (p *Projects) Stat(name string) (storage.Stat, error) {
	st, err := p.Renamed.Stat(name)
	isProject := !strings.Contains(name, "/")
	if err == nil && isProject {
		st = p.inner.With(p.Raw, name, st)
	}
	return st, err
}

// Open implements storage.Files. In the directory of a session it tries the shown name first, as most subagents
// have it, and the project need not be read then.
func (p *Projects) Open(name string) (storage.Object, error) {
	isInSession := strings.Count(name, "/") > 1
	if isInSession {
		obj, err := p.Raw.Open(name)
		if !storage.IsMissing(err) {
			return obj, err
		}
	}
	return p.Renamed.Open(name)
}

// real implements agents.Renamed.Real.
func (p *Projects) real(name string) (file string, kind storage.Kind, err error) {
	at := parsePath(name)
	if !at.mayBeElsewhere() {
		return name, agents.AsItIs, nil
	}
	st, err := p.Raw.Stat(name)
	isAgentFile := at.level == entryLevel && st.Kind == storage.KindFile // it may be shown with its session
	if !isAgentFile && !storage.IsMissing(err) {
		return name, agents.AsItIs, nil
	}
	in, err := p.project(at.project)
	if err != nil {
		return "", 0, err
	}
	switch at.level {
	case entryLevel:
		return p.realEntry(in, &at)
	case subagentsLevel:
		if p.hasSubagents(in, at.entry) {
			return at.sessionFile(), storage.KindDir, nil
		}
	case subagentLevel:
		switch {
		case in.owners[at.below] == at.entry:
			return path.Join(at.project, at.below), storage.KindFile, nil
		case p.hasChain(in, at.entry, at.below):
			return at.sessionFile(), storage.KindFile, nil
		}
	}
	return name, agents.AsItIs, nil
}

// mayBeElsewhere reports whether a path may be shown without a file of its name. A session's file never is.
func (p *shownPath) mayBeElsewhere() bool {
	switch p.level {
	case entryLevel:
		return isSubagent(p.entry) || !strings.HasSuffix(p.entry, ending)
	case subagentsLevel, subagentLevel:
		return true
	}
	return false
}

// realEntry is real for a name in a project. Subagents with a session are missing there.
func (p *Projects) realEntry(in *project, at *shownPath) (file string, kind storage.Kind, err error) {
	name := path.Join(at.project, at.entry)
	lost := in.lost.Files[at.entry]
	switch {
	case lost != "":
		return lost, storage.KindFile, nil
	case in.isMoved(at.entry):
		return "", 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	case p.hasSubagents(in, at.entry):
		return at.sessionFile(), storage.KindDir, nil
	}
	return name, agents.AsItIs, nil
}
