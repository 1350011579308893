package agents

import (
	"hash/crc32"
	"maps"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/storage"
)

// Projects is an agent with sessions in directories of projects. It shows DIR/PROJECT/BELOW/FILE as
// PROJECT/SESSION.jsonl, and DIR/PROJECT/BELOW/SIDE/FILE, the sessions of subagents, as
// PROJECT/SESSION/subagents/FILE, and as PROJECT/FILE where their session is gone. A file without the
// ending .jsonl is one JSON object.
type Projects struct {
	Renamed    // Init sets all but Raw, which is nil for a file elsewhere
	Dir, Below string
	// Archive is a directory in BELOW with more sessions, "" for none.
	Archive string
	// Sides is the directory in PROJECT with the directories of subagents, "" for BELOW.
	Sides string
	// Session returns the session of a file, or "". Of two files the one in .jsonl counts.
	Session func(file string) string
	// Key returns a text common to a session and the directory of its subagents.
	Key func(name string) string
	// Copied reports whether a session is shown in another project.
	Copied func(project, session string) bool
	// Cwd returns the working directory of a project, "" if only records name it.
	Cwd func(project string) string

	// Model returns the model of a subagent by its file, "" if the records tell it. It may be nil.
	Model func(file string) string

	// HasTitle reports whether a line may have the title.
	HasTitle func(line []byte) bool
	Provider Provider
	Begin    func(*Builder) func(*Record)

	lists Cached[projectList]
	inner Inner // directories of subagents without a session
	stubs Cached[bool]
}

// Subagents is the directory of subagents' sessions in a session's directory.
const Subagents = "subagents"

// projectList has the sessions of a project, by their names without the ending, and the subagents
// without one.
type projectList struct {
	sessions map[string]*projectSession
	lost     LostSubagents
}

// projectSession is a session in a project.
type projectSession struct {
	file  string
	side  string   // the directory of its subagents, or ""
	twins []string // the files of the first maxTwins sessions with its key
}

// maxTwins bounds the files of one key that may have its conversation. A client leaves a few.
const maxTwins = 16

// Init must be called before other methods.
func (p *Projects) Init() {
	p.Names = p.names
	p.Real = p.real
}

// chats returns the directory of a project's sessions.
func (p *Projects) chats(project string) string { return path.Join(p.Dir, project, p.Below) }

// list returns the sessions of a project.
func (p *Projects) list(project string) (projectList, error) {
	dir := p.chats(project)
	st, err := p.Raw.Stat(dir)
	if err != nil {
		return projectList{}, err
	}
	st = p.inner.With(p.Raw, project, st)
	return p.lists.Of(dir, st, func() (projectList, error) {
		list, err := p.read(project)
		p.inner.Set(project, slices.Concat(p.more(project), list.lost.Dirs))
		return list, err
	})
}

// sidesDir returns the directory with the directories of a project's subagents.
func (p *Projects) sidesDir(project string) string {
	if p.Sides == "" {
		return p.chats(project)
	}
	return path.Join(p.Dir, project, p.Sides)
}

// more returns the directories of a project, besides the one of its sessions, that change its list.
func (p *Projects) more(project string) (dirs []string) {
	if p.Archive != "" {
		dirs = append(dirs, path.Join(p.chats(project), p.Archive))
	}
	if p.Sides != "" {
		dirs = append(dirs, p.sidesDir(project))
	}
	return dirs
}

// add adds the sessions among the items of a directory.
func (l *projectList) add(p *Projects, dir string, items []storage.Item) {
	for _, item := range items {
		at := path.Join(dir, item.Name)
		session := p.Session(item.Name)
		if item.Kind != storage.KindFile || session == "" {
			continue
		}
		isKnown := l.sessions[session] != nil
		isPreferred := strings.HasSuffix(at, sessionEnding)
		if !isKnown || isPreferred {
			l.sessions[session] = &projectSession{file: at}
		}
	}
}

// read reads the directories of a project. A session in Archive counts where no other has its name.
func (p *Projects) read(project string) (list projectList, err error) {
	list.sessions = map[string]*projectSession{}
	dir := p.chats(project)
	items, err := storage.List(p.Raw, dir)
	if p.Archive != "" {
		archive := path.Join(dir, p.Archive)
		archived, _ := storage.List(p.Raw, archive) // there may be none
		list.add(p, archive, archived)
	}
	list.add(p, dir, items)
	sidesDir := p.sidesDir(project)
	if p.Sides != "" {
		items, _ = storage.List(p.Raw, sidesDir) // there may be none
	}
	sides := map[string]string{} // the directories of subagents, by keys
	for _, item := range items {
		if item.Kind == storage.KindDir {
			sides[p.Key(item.Name)] = path.Join(sidesDir, item.Name)
		}
	}
	twins := list.twins(p)
	for session, s := range list.sessions {
		key := p.Key(session)
		s.side = sides[key]
		s.twins = twins[key]
	}
	list.lost.Taken = func(name string) bool {
		session := strings.TrimSuffix(name, sessionEnding)
		return list.sessions[session] != nil
	}
	for _, item := range items {
		hasSession := len(twins[p.Key(item.Name)]) > 0
		if item.Kind == storage.KindDir && !hasSession {
			list.lost.Add(p.Raw, path.Join(sidesDir, item.Name), item.Name)
		}
	}
	return list, err
}

// twins returns the files of sessions by their keys, which several sessions can have.
func (l *projectList) twins(p *Projects) map[string][]string {
	twins := map[string][]string{}
	for _, session := range slices.Sorted(maps.Keys(l.sessions)) {
		key := p.Key(session)
		if len(twins[key]) < maxTwins {
			twins[key] = append(twins[key], l.sessions[session].file)
		}
	}
	return twins
}

// session returns a session unless it is hidden.
func (p *Projects) session(project, name string) *projectSession {
	list, err := p.list(project)
	if s := list.sessions[name]; err == nil && s != nil && !p.hidden(project, name, s) {
		return s
	}
	return nil
}

var _ Orphans = (*Projects)(nil)

// Orphan implements Orphans.
func (p *Projects) Orphan(name string) (shown string, ok bool) {
	project, below, _ := strings.Cut(name, "/")
	if p.Sides != "" { // else names are as the files lie
		below = strings.Replace(below, "/"+Subagents+"/", "/", 1)
	}
	list, err := p.list(project)
	file := path.Join(p.sidesDir(project), below)
	base := list.lost.NameOf(file)
	isOrphan := err == nil && base != ""
	return path.Join(project, base), isOrphan
}

// Has reports whether a project has a session, hidden or not.
func (p *Projects) Has(project, session string) bool {
	list, _ := p.list(project)
	return list.sessions[session] != nil
}

// real returns the file or directory of a shown name:
//
//	""                               Dir
//	PROJECT                          the directory of the project's sessions
//	PROJECT/SESSION.jsonl            the session, or a subagent's that lost it
//	PROJECT/SESSION                  the directory of the session's subagents
//	PROJECT/SESSION/subagents        the same
//	PROJECT/SESSION/subagents/AGENT.jsonl
//	                                 a file in it
func (p *Projects) real(name string) (at string, kind storage.Kind, err error) {
	if name == "" {
		return p.Dir, storage.KindDir, nil
	}
	parts := strings.Split(name, "/")
	depth := len(parts)
	if depth == 1 {
		return p.chats(name), storage.KindDir, nil
	}
	project := parts[0]
	base, isFile := strings.CutSuffix(parts[1], sessionEnding)
	session := p.session(project, base)
	if isFile {
		file := ""
		switch {
		case depth > 2:
		case session != nil:
			file = session.file
		default:
			file = p.lostFile(project, parts[1])
		}
		if file == "" {
			return "", 0, Missing(name)
		}
		return file, storage.KindFile, nil
	}
	if session == nil || session.side == "" || depth > 2 && parts[2] != Subagents {
		return "", 0, Missing(name)
	}
	switch {
	case depth < 4:
		return session.side, storage.KindDir, nil
	case depth == 4 && strings.HasSuffix(name, sessionEnding):
		return path.Join(session.side, parts[3]), storage.KindFile, nil
	}
	return "", 0, Missing(name)
}

// lostFile returns the file of a subagent without its session, by its shown name, or "".
func (p *Projects) lostFile(project, name string) string {
	list, err := p.list(project)
	if err != nil {
		return ""
	}
	return list.lost.Files[name]
}

// names returns the names in a directory: projects, sessions and their directories, or subagents'
// sessions.
func (p *Projects) names(dir string) (items []storage.Item, err error) {
	add := func(kind storage.Kind, names ...string) {
		for _, name := range names {
			items = append(items, storage.Item{Name: name, Kind: kind})
		}
	}
	depth := strings.Count(dir, "/")
	switch {
	case dir == "":
		add(storage.KindDir, p.withSessions()...)
	case depth == 0:
		var list projectList
		list, err = p.list(dir)
		for name := range list.lost.Files {
			add(storage.KindFile, name)
		}
		for name := range list.sessions {
			s := p.session(dir, name)
			if s != nil {
				add(storage.KindFile, name+sessionEnding)
				if s.side != "" {
					add(storage.KindDir, name)
				}
			}
		}
	case depth == 1:
		add(storage.KindDir, Subagents)
	default:
		at, _, err := p.real(dir)
		if err != nil {
			return nil, err
		}
		files, err := storage.List(p.Raw, at)
		for _, item := range files {
			if item.Kind == storage.KindFile && strings.HasSuffix(item.Name, sessionEnding) {
				add(item.Kind, item.Name)
			}
		}
		return items, err
	}
	return items, err
}

// InEach returns the paths of a file in the directories of projects.
func (p *Projects) InEach(file string) (paths []string) {
	for _, project := range p.all() {
		paths = append(paths, path.Join(p.Dir, project, file))
	}
	return paths
}

// all returns the directories of projects, in order.
func (p *Projects) all() (names []string) {
	items, _ := storage.List(p.Raw, p.Dir)
	for _, item := range items {
		if item.Kind == storage.KindDir {
			names = append(names, item.Name)
		}
	}
	return names
}

// withSessions returns the projects that have sessions.
func (p *Projects) withSessions() []string {
	return slices.DeleteFunc(p.all(), func(name string) bool {
		st, err := p.Raw.Stat(p.chats(name))
		return err != nil || st.Kind != storage.KindDir
	})
}

// Stat implements storage.Files. The state of the root changes with the projects that have
// sessions, and the state of a project with the directories of subagents without a session.
func (p *Projects) Stat(name string) (storage.Stat, error) {
	st, err := p.Renamed.Stat(name)
	if err != nil {
		return st, err
	}
	isProject := !strings.Contains(name, "/")
	switch {
	case name == "":
		projects := strings.Join(p.withSessions(), "/")
		st.Inode ^= uint64(crc32.ChecksumIEEE([]byte(projects)))
	case isProject:
		st = p.inner.With(p.Raw, name, st)
	}
	return st, nil
}
