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

// list returns the sessions of a project, which it reads again after a change of one of the project's directories.
func (p *Projects) list(project string) (projectList, error) {
	dir := p.chats(project)
	st, err := p.Raw.Stat(dir)
	if err != nil {
		return projectList{}, err
	}
	st = p.inner.With(p.Raw, project, st)
	return p.lists.Of(dir, st, func() (projectList, error) {
		list, err := p.read(project)
		dirs := slices.Concat(p.more(project), list.lost.Dirs)
		p.inner.Set(project, dirs)
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

// add adds the sessions among the items of a directory. One in .jsonl replaces a session of the same name.
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
			dir := path.Join(sidesDir, item.Name)
			list.lost.Add(p.Raw, dir, item.Name)
		}
	}
	return list, err
}

// twins returns the files of sessions by their keys, which several sessions can have: the first maxTwins of each, in the
// order of their names.
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

// session returns a session, nil if it is hidden, unknown or cannot be read.
func (p *Projects) session(project, name string) *projectSession {
	list, err := p.list(project)
	s := list.sessions[name]
	if err != nil || s == nil || p.isHidden(project, name, s) {
		return nil
	}
	return s
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
	project, inProject, hasMore := strings.Cut(name, "/")
	if !hasMore {
		return p.chats(project), storage.KindDir, nil
	}
	entry, below, isDeep := strings.Cut(inProject, "/")
	session, isFile := strings.CutSuffix(entry, sessionEnding)
	switch {
	case !isFile:
		at, kind = p.realSide(project, session, below)
	case !isDeep:
		at = p.sessionFile(project, session)
		kind = storage.KindFile
	}
	if at == "" {
		return "", 0, Missing(name)
	}
	return at, kind, nil
}

// realSide is real for the directory of a session, and for a path below it, which is "" for the directory itself. It
// returns "" for a name that is not there.
func (p *Projects) realSide(project, session, below string) (at string, kind storage.Kind) {
	s := p.session(project, session)
	if s == nil || s.side == "" {
		return "", 0
	}
	if below == "" || below == Subagents {
		return s.side, storage.KindDir
	}
	file, isInSide := strings.CutPrefix(below, Subagents+"/")
	isSession := strings.HasSuffix(file, sessionEnding) && !strings.Contains(file, "/")
	if !isInSide || !isSession {
		return "", 0
	}
	return path.Join(s.side, file), storage.KindFile
}

// sessionFile returns the file of a session, or of a subagent that lost its session, or "".
func (p *Projects) sessionFile(project, name string) string {
	s := p.session(project, name)
	if s != nil {
		return s.file
	}
	return p.lostFile(project, name+sessionEnding)
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
func (p *Projects) names(dir string) ([]storage.Item, error) {
	project, below, isInProject := strings.Cut(dir, "/")
	isOfSession := isInProject && !strings.Contains(below, "/")
	switch {
	case dir == "":
		var items []storage.Item
		for _, name := range p.withSessions() {
			items = append(items, storage.Item{Name: name, Kind: storage.KindDir})
		}
		return items, nil
	case !isInProject:
		return p.sessionNames(project)
	case isOfSession:
		return []storage.Item{{Name: Subagents, Kind: storage.KindDir}}, nil
	}
	return p.subagentNames(dir)
}

// sessionNames returns the names in a project: its sessions, the directories of their subagents, and the subagents that
// lost their session.
func (p *Projects) sessionNames(project string) (items []storage.Item, err error) {
	list, err := p.list(project)
	for name := range list.lost.Files {
		items = append(items, storage.Item{Name: name, Kind: storage.KindFile})
	}
	for name := range list.sessions {
		s := p.session(project, name)
		if s == nil {
			continue
		}
		items = append(items, storage.Item{Name: name + sessionEnding, Kind: storage.KindFile})
		if s.side != "" {
			items = append(items, storage.Item{Name: name, Kind: storage.KindDir})
		}
	}
	return items, err
}

// subagentNames returns the names of subagents' sessions in a shown directory of them.
func (p *Projects) subagentNames(dir string) (items []storage.Item, err error) {
	at, _, err := p.real(dir)
	if err != nil {
		return nil, err
	}
	files, err := storage.List(p.Raw, at)
	for _, item := range files {
		isSession := item.Kind == storage.KindFile && strings.HasSuffix(item.Name, sessionEnding)
		if isSession {
			items = append(items, storage.Item{Name: item.Name, Kind: item.Kind})
		}
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

// withSessions returns the projects that have a directory of sessions, in order.
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
		sum := crc32.ChecksumIEEE([]byte(projects))
		st.Inode ^= uint64(sum)
	case isProject:
		st = p.inner.With(p.Raw, name, st)
	}
	return st, nil
}
