package claude

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

// project is the content of a project's directory, in one state of it.
type project struct {
	name    string
	agents  map[string][]string  // for each session in the directory: the files of subagents beside it that belong to it
	owners  map[string]string    // the sessions of all these files
	lost    agents.LostSubagents // subagents in the directories of sessions without a file
	once    sync.Once
	byFirst map[string][]string // sessions by the uuid of their first record; set by once
}

// project returns the content of a project's directory. It reads the beginnings of the subagents' files in it.
func (p *Projects) project(name string) (*project, error) {
	st, err := p.Stat(name)
	if err != nil {
		return nil, err
	}
	return p.projects.Of(name, st, func() (*project, error) {
		return p.readProject(name)
	})
}

// readProject is project without the cache.
func (p *Projects) readProject(name string) (*project, error) {
	in := &project{
		name:   name,
		agents: map[string][]string{},
		owners: map[string]string{},
	}
	var dirs, agentFiles []string
	err := p.Raw.List(name, nil, func(item storage.Item) bool {
		base, isRecords := strings.CutSuffix(item.Name, ending)
		switch {
		case item.Kind == storage.KindDir:
			dirs = append(dirs, item.Name)
		case !isRecords || item.Kind != storage.KindFile:
		case isSubagent(base):
			agentFiles = append(agentFiles, item.Name)
		default:
			in.agents[base] = nil
		}
		return true
	})
	for _, file := range agentFiles {
		owner := p.first(path.Join(name, file), "sessionId")
		_, hasFile := in.agents[owner]
		if hasFile {
			in.agents[owner] = append(in.agents[owner], file)
			in.owners[file] = owner
		}
	}
	p.findLost(in, dirs, agentFiles)
	return in, err
}

// findLost sets the project's lost subagents: those in directories without the file of their session beside
// them. dirs are the project's directories, which it sorts, and agentFiles the subagents directly in the project.
func (p *Projects) findLost(in *project, dirs, agentFiles []string) {
	isTaken := map[string]bool{}
	for _, file := range agentFiles {
		isTaken[file] = true
	}
	in.lost = agents.LostSubagents{
		Deep:  true,
		Is:    func(name string) bool { return strings.HasPrefix(name, agentPrefix) },
		Taken: func(name string) bool { return isTaken[name] },
	}
	slices.Sort(dirs) // of two subagents with one name, the first keeps it
	for _, session := range dirs {
		_, hasFile := in.agents[session]
		if !hasFile {
			dir := path.Join(in.name, session, subagents)
			in.lost.Add(p.Raw, dir, session)
		}
	}
	p.inner.Set(in.name, in.lost.Dirs)
}

// isMoved reports whether a file of a subagent beside the sessions is shown in the directory of one of them.
func (in *project) isMoved(file string) bool { return in.owners[file] != "" }

// subagentsOf returns the names of the subagents' sessions to show with a session, beside those in its directory.
func (p *Projects) subagentsOf(in *project, session string) []string {
	names := slices.Clone(in.agents[session])
	for _, uuid := range p.chains(in, session) {
		names = append(names, chainPrefix+uuid+ending)
	}
	return names
}

// hasSubagents reports whether subagentsOf has names.
func (p *Projects) hasSubagents(in *project, session string) bool {
	return len(in.agents[session]) > 0 || len(p.chains(in, session)) > 0
}

// chains returns the ids of the conversations of subagents in a session's own file, none if it cannot be read.
func (p *Projects) chains(in *project, session string) []string {
	if !p.hasOldFile(in, session) {
		return nil
	}
	file := in.fileOf(session)
	chains, _ := p.inside.Subagents(p.Raw, file)
	return chains
}

// hasChain reports whether a session's own file has the conversation of a subagent that is shown under a file's name.
func (p *Projects) hasChain(in *project, session, name string) bool {
	base, isRecords := strings.CutSuffix(name, ending)
	uuid, isChain := strings.CutPrefix(base, chainPrefix)
	if !isRecords || !isChain || !p.hasOldFile(in, session) {
		return false
	}
	file := in.fileOf(session)
	has, _ := p.inside.Has(p.Raw, file, uuid)
	return has
}

// hasOldFile reports whether a session has a file that one of the oldest clients may have written.
func (p *Projects) hasOldFile(in *project, session string) bool {
	_, hasFile := in.agents[session]
	return hasFile && p.isOld(in.fileOf(session))
}

const (
	// nearSize bounds the read of a client's version, which is near the beginning.
	nearSize = 4 << 10
	// maxVersion is the part of a version that isNew needs, in bytes.
	maxVersion = 8
)

// isOld reports whether a session's file may have records of subagents, by its client's version. A file that
// names none at its beginning may have them.
func (p *Projects) isOld(file string) bool {
	isOld, _ := p.ages.OfHead(p.Raw, file, nearSize, isOldHead)
	return isOld
}

// isOldHead is isOld for the first bytes of a file, none for one that cannot be read. An error tells that more
// bytes may have the version.
func isOldHead(head []byte) (bool, error) {
	if len(head) == 0 {
		return false, errUnknown
	}
	_, version, hasVersion := bytes.Cut(head, []byte(`"version"`))
	version = bytes.TrimLeft(version, `: "`)
	version = version[:min(len(version), maxVersion)]
	isOld := !isNew(string(version))
	if !hasVersion && len(head) < nearSize {
		return isOld, errUnknown
	}
	return isOld, nil
}

// isNew reports whether a client of a version, "" if it is unknown, writes records of subagents into files of
// their own, as 2.1 does.
func isNew(version string) bool {
	isUnknown := version == ""
	isOld := strings.HasPrefix(version, "0.") || strings.HasPrefix(version, "1.") || strings.HasPrefix(version, "2.0.")
	return !isUnknown && !isOld
}

// mayHaveChains reports whether lines may have records of subagents: whether a member isSidechain in them is true.
func mayHaveChains(lines []byte) bool {
	for {
		_, value, found := bytes.Cut(lines, []byte(`"isSidechain":`))
		if !found {
			return false
		}
		value = bytes.TrimLeft(value, " ")
		if bytes.HasPrefix(value, []byte("true")) {
			return true
		}
		lines = value
	}
}

// newSharing implements agents.Inside.Share: it gives each record of a subagent to the subagent of its
// conversation, whose id is the uuid of the first record.
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
