package claude

import (
	"bytes"
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
// sidechain-UUID.jsonl for each of them. A subagent without its session is one of its own,
// PROJECT/agent-ID.jsonl.
type Projects struct {
	agents.Renamed

	projects agents.Cached[*project]
	inside   agents.Inside         // the subagents in sessions' files, by their first records
	firsts   agents.Cached[string] // of first records: a session's uuid, or a subagent's session
	ages     agents.Cached[bool]   // whether one of the oldest clients may have written a file
	inner    agents.Inner          // directories of subagents without their session

	mu    sync.Mutex // guards forks
	forks map[string]comparison
}

var _ agents.Orphans = (*Projects)(nil)

// errUnknown keeps a fact out of a cache, as the file does not tell it yet.
var errUnknown = errors.New("not known yet")

// project is the content of a project's directory.
type project struct {
	agents  map[string][]string  // files of subagents, by their sessions
	owners  map[string]string    // the sessions of all these files
	lost    agents.LostSubagents // subagents in the directories of sessions without a file
	once    sync.Once
	byFirst map[string][]string // sessions by their first record, set by once
}

const (
	// firstSize bounds the read of a first record.
	firstSize = 64 << 10
	// nearSize bounds the read of a client's version, which is near the beginning.
	nearSize = 4 << 10
)

// NewProjects returns the projects in files.
func NewProjects(files storage.Files) *Projects {
	p := &Projects{
		inside: agents.Inside{May: mayHaveChains, InnerKey: innerKey, Share: newSharing},
		forks:  map[string]comparison{},
	}
	p.firsts.OfBeginning = true
	p.ages.OfBeginning = true
	p.Raw = files
	p.Real = p.real
	return p
}

// List implements storage.Files.
func (p *Projects) List(dir string, only []string, f func(storage.Item) bool) error {
	parts := strings.Split(dir, "/")
	hasSubagents := len(parts) > 2 && parts[2] == subagents
	if len(parts) == 1 && slices.ContainsFunc(only, isSubagent) {
		return storage.ListOnly(p, dir, only, f)
	}
	if dir == "" || only != nil && len(parts) == 1 || len(parts) > 3 || len(parts) == 3 && !hasSubagents {
		return p.listRaw(dir, only, f)
	}
	if only != nil {
		return storage.ListOnly(p, dir, only, f)
	}
	in, err := p.project(parts[0])
	if err != nil {
		return err
	}
	if hasSubagents {
		f = in.withoutLost(dir, f)
	}
	inDir := map[string]bool{}
	more := true
	err = p.Raw.List(dir, nil, func(item storage.Item) bool {
		inDir[item.Name] = true
		more = len(parts) == 1 && in.isMoved(item.Name) || f(item)
		return more
	})
	add := func(kind storage.Kind, names ...string) {
		for _, name := range names {
			if more && !inDir[name] {
				state := func() (storage.Stat, error) {
					if len(parts) == 1 && !p.hasAgents(in, dir, name) { // mostly
						return storage.Stat{}, fs.ErrNotExist
					}
					return p.Stat(path.Join(dir, name))
				}
				more = f(storage.Item{Name: name, Kind: kind, State: state})
				err = nil
			}
		}
	}
	switch {
	case !more || err != nil && !storage.IsMissing(err):
	case len(parts) == 3:
		add(storage.KindFile, p.agents(in, parts[0], parts[1])...)
	case len(parts) == 2 && p.hasAgents(in, parts[0], parts[1]):
		add(storage.KindDir, subagents)
	case len(parts) == 1:
		for session := range in.agents { // a list must not read them
			add(storage.KindDir, session)
		}
		for name := range in.lost.Files {
			if more && !inDir[name] {
				state := func() (storage.Stat, error) { return p.Stat(path.Join(dir, name)) }
				more = f(storage.Item{Name: name, Kind: storage.KindFile, State: state})
			}
		}
	}
	return err
}

// Orphan implements agents.Orphans.
func (p *Projects) Orphan(name string) (shown string, ok bool) {
	project, below, _ := strings.Cut(name, "/")
	in, err := p.project(project)
	if err != nil || !isSubagent(path.Base(name)) {
		return "", false
	}
	if !strings.Contains(below, "/") {
		return name, !in.isMoved(below)
	}
	base := in.lost.NameOf(name)
	return path.Join(project, base), base != ""
}

// listRaw lists a directory as it is, without the subagents that its project shows as sessions.
func (p *Projects) listRaw(dir string, only []string, f func(storage.Item) bool) error {
	parts := strings.Split(dir, "/")
	if only == nil && len(parts) > 3 && parts[2] == subagents {
		in, err := p.project(parts[0])
		if err == nil {
			f = in.withoutLost(dir, f)
		}
	}
	return p.Raw.List(dir, only, f)
}

// withoutLost returns f without the subagents in a directory that the project shows as sessions.
func (in *project) withoutLost(dir string, f func(storage.Item) bool) func(storage.Item) bool {
	return func(item storage.Item) bool { return in.lost.Has(path.Join(dir, item.Name)) || f(item) }
}

// Stat implements storage.Files. The state of a project changes with the directories of subagents
// without their session.
func (p *Projects) Stat(name string) (storage.Stat, error) {
	st, err := p.Renamed.Stat(name)
	if err == nil && !strings.Contains(name, "/") {
		st = p.inner.With(p.Raw, name, st)
	}
	return st, err
}

// Open implements storage.Files. Most subagents have the shown name.
func (p *Projects) Open(name string) (storage.Object, error) {
	if strings.Count(name, "/") > 1 {
		if obj, err := p.Raw.Open(name); !storage.IsMissing(err) {
			return obj, err
		}
	}
	return p.Renamed.Open(name)
}

// project returns the content of a project's directory.
func (p *Projects) project(name string) (*project, error) {
	st, err := p.Stat(name)
	if err != nil {
		return nil, err
	}
	return p.projects.Of(name, st, func() (*project, error) {
		in := &project{agents: map[string][]string{}, owners: map[string]string{}}
		var names, dirs []string
		err := p.Raw.List(name, nil, func(item storage.Item) bool {
			base, isRecords := strings.CutSuffix(item.Name, ending)
			switch {
			case item.Kind == storage.KindDir:
				dirs = append(dirs, item.Name)
			case !isRecords || item.Kind != storage.KindFile:
			case isSubagent(base):
				names = append(names, item.Name)
			default:
				in.agents[base] = nil
			}
			return true
		})
		for _, agent := range names {
			owner := p.first(path.Join(name, agent), "sessionId")
			if _, ok := in.agents[owner]; ok {
				in.agents[owner] = append(in.agents[owner], agent)
				in.owners[agent] = owner
			}
		}
		in.lost = p.lost(name, dirs, names, in)
		return in, err
	})
}

// lost returns the subagents in those directories of a project that have no session's file beside
// them. files are the subagents directly in the project.
func (p *Projects) lost(project string, dirs, files []string, in *project) agents.LostSubagents {
	isOne := func(name string) bool { return strings.HasPrefix(name, agentPrefix) }
	taken := map[string]bool{}
	for _, file := range files {
		taken[file] = true
	}
	lost := agents.LostSubagents{Deep: true, Is: isOne, Taken: func(name string) bool { return taken[name] }}
	slices.Sort(dirs)
	for _, session := range dirs {
		if _, hasFile := in.agents[session]; !hasFile {
			lost.Add(p.Raw, path.Join(project, session, subagents), session)
		}
	}
	p.inner.Set(project, lost.Dirs)
	return lost
}

// isMoved reports whether a file beside the sessions is shown with one of them.
func (in *project) isMoved(file string) bool { return in.owners[file] != "" }

// agents returns the names of the subagents' sessions to show with a session.
func (p *Projects) agents(in *project, project, session string) []string {
	names := slices.Clone(in.agents[session])
	for _, uuid := range p.chains(in, project, session) {
		names = append(names, chainPrefix+uuid+ending)
	}
	return names
}

// hasAgents reports whether subagents' sessions are shown with a session.
func (p *Projects) hasAgents(in *project, project, session string) bool {
	return len(in.agents[session]) > 0 || len(p.chains(in, project, session)) > 0
}

// chains returns the conversations of subagents in a session's own file, by their first records.
func (p *Projects) chains(in *project, project, session string) []string {
	file := path.Join(project, session+ending)
	if _, ok := in.agents[session]; !ok || !p.isOld(file) {
		return nil
	}
	chains, _ := p.inside.Subagents(p.Raw, file)
	return chains
}

// hasChain reports whether a name is that of one of these conversations.
func (p *Projects) hasChain(in *project, project, session, name string) bool {
	uuid, isChain := strings.CutPrefix(strings.TrimSuffix(name, ending), chainPrefix)
	file := path.Join(project, session+ending)
	if _, ok := in.agents[session]; !ok || !isChain || !strings.HasSuffix(name, ending) || !p.isOld(file) {
		return false
	}
	has, _ := p.inside.Has(p.Raw, file, uuid)
	return has
}

// isOld reports whether a session's file may have records of subagents, by its client's version.
func (p *Projects) isOld(file string) bool {
	isOld, _ := p.ages.OfHead(p.Raw, file, nearSize, func(head []byte) (_ bool, err error) {
		if len(head) == 0 {
			return false, errUnknown
		}
		_, version, hasVersion := bytes.Cut(head, []byte(`"version"`))
		version = bytes.TrimLeft(version, `: "`)
		if !hasVersion && len(head) < nearSize {
			err = errUnknown
		}
		return !isNew(string(version[:min(len(version), 8)])), err
	})
	return isOld
}

// mayHaveChains reports whether lines have records of subagents.
func mayHaveChains(lines []byte) bool {
	for found := true; found; {
		_, lines, found = bytes.Cut(lines, []byte(`"isSidechain":`))
		if found &&
			bytes.HasPrefix(bytes.TrimLeft(lines, " "), []byte("true")) {
			return true
		}
	}
	return false
}

// newSharing returns a function that gives each record of a file to the subagent of its conversation.
// The id of a subagent is the uuid of its first record.
func newSharing() func(*agents.Record, agents.RecordPlace, agents.Give) {
	side := newChains()
	return func(r *agents.Record, at agents.RecordPlace, give agents.Give) {
		if !r.Member("isSidechain").IsTrue() {
			return
		}
		uuid, _ := r.Member("uuid").Text()
		parent, _ := r.Member("parentUuid").Text()
		first := side.add(uuid, parent)
		if isName(first) {
			give(first, at)
		}
	}
}

// isName reports whether an id can be a part of a file's name.
func isName(id string) bool { return storage.CheckName(id) == nil && !strings.Contains(id, "/") }

// isNew reports whether a client writes records of subagents into own files, as 2.1 does.
func isNew(version string) bool {
	return version != "" && !strings.HasPrefix(version, "0.") && !strings.HasPrefix(version, "1.") &&
		!strings.HasPrefix(version, "2.0.")
}

// real returns the file of a shown name.
func (p *Projects) real(name string) (file string, kind storage.Kind, err error) {
	parts := strings.Split(name, "/")
	n := len(parts)
	if n < 2 || n > 4 || n > 2 && parts[2] != subagents ||
		n == 2 && strings.HasSuffix(name, ending) && !isSubagent(parts[1]) {
		return name, agents.AsItIs, nil
	}
	st, err := p.Raw.Stat(name)
	if (n > 2 || st.Kind != storage.KindFile) && !storage.IsMissing(err) {
		return name, agents.AsItIs, nil
	}
	in, err := p.project(parts[0])
	switch {
	case err != nil:
		return "", 0, err
	case n == 2 && in.lost.Files[parts[1]] != "":
		return in.lost.Files[parts[1]], storage.KindFile, nil
	case n == 2 && in.isMoved(parts[1]):
		return "", 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	session := path.Join(parts[0], parts[1]+ending)
	switch {
	case n < 4 && p.hasAgents(in, parts[0], parts[1]):
		return session, storage.KindDir, nil
	case n == 4 && in.owners[parts[3]] == parts[1]:
		return path.Join(parts[0], parts[3]), storage.KindFile, nil
	case n == 4 && p.hasChain(in, parts[0], parts[1], parts[3]):
		return session, storage.KindFile, nil
	}
	return name, agents.AsItIs, nil
}
