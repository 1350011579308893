package claude

import (
	"bytes"
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

// Projects shows Claude Code's projects with all subagents in PROJECT/ID/subagents/, as of newer
// clients. Older clients write agent-ID.jsonl beside the session that its records name, and the
// oldest ones write the records of subagents into the session's file, which appears again as
// sidechain-UUID.jsonl for each of them.
type Projects struct {
	storage.Files

	mu       sync.Mutex // guards the fields below
	firsts   map[string]firstText
	forks    map[string]comparison
	projects map[string]*project
	inFiles  map[string]*inFile
	ages     map[string]clientAge
}

// clientAge tells whether one of the oldest clients may have written a file.
type clientAge struct {
	device, inode uint64
	isOld         bool
}

// firstText is a fact of a file's first record: a session's uuid, or a subagent's session.
type firstText struct {
	device, inode uint64
	text          string
}

// project is the content of a project's directory.
type project struct {
	token   storage.Token
	agents  map[string][]string // files of subagents, by their sessions
	moved   map[string]bool     // the names of all these files
	once    sync.Once
	byFirst map[string][]string // sessions by their first record, set by once
}

// inFile is the list of subagents with records in a session's file.
type inFile struct {
	token storage.Token
	names []string // of their sessions
}

const (
	// firstSize bounds the read of a first record.
	firstSize = 64 << 10
	// nearSize bounds the read of a client's version, which is near the beginning.
	nearSize = 4 << 10
)

// NewProjects returns the projects in files.
func NewProjects(files storage.Files) *Projects {
	return &Projects{
		Files: files, firsts: map[string]firstText{}, forks: map[string]comparison{},
		projects: map[string]*project{}, inFiles: map[string]*inFile{}, ages: map[string]clientAge{},
	}
}

// List implements storage.Files.
func (p *Projects) List(dir string, only []string, f func(storage.Item) bool) error {
	parts := strings.Split(dir, "/")
	if dir == "" || only != nil && len(parts) == 1 || len(parts) > 3 || len(parts) == 3 && parts[2] != subagents {
		return p.Files.List(dir, only, f)
	}
	if only != nil {
		return storage.ListOnly(p, dir, only, f)
	}
	in, err := p.project(parts[0])
	if err != nil {
		return err
	}
	var added, likely []string
	switch {
	case len(parts) == 1:
		for session, beside := range in.agents {
			if len(beside) > 0 {
				added = append(added, session)
			} else if p.isOld(path.Join(dir, session+ending)) {
				likely = append(likely, session)
			}
		}
	case len(parts) == 3:
		added = p.agents(in, parts[0], parts[1])
	case len(p.agents(in, parts[0], parts[1])) > 0:
		added = []string{subagents}
	}
	inDir, stopped := map[string]bool{}, false
	err = p.Files.List(dir, nil, func(item storage.Item) bool {
		inDir[item.Name] = true
		stopped = !(len(parts) == 1 && in.moved[item.Name]) && !f(item)
		return !stopped
	})
	if stopped || err != nil && !(storage.IsMissing(err) && len(added) > 0) {
		return err
	}
	isInDir := func(name string) bool { return inDir[name] }
	for _, name := range slices.DeleteFunc(likely, isInDir) { // only a scan of the session's file is certain
		state := func() (storage.Stat, error) { return p.Stat(path.Join(dir, name)) }
		if !f(storage.Item{Name: name, Kind: storage.KindDir, State: state}) {
			return nil
		}
	}
	return storage.ListOnly(p, dir, slices.DeleteFunc(added, isInDir), f)
}

// project returns the content of a project's directory.
func (p *Projects) project(name string) (*project, error) {
	now := time.Now().UnixNano()
	st, err := p.Files.Stat(name)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	in := p.projects[name]
	p.mu.Unlock()
	if in != nil && in.token == st.Token {
		return in, nil
	}
	in = &project{token: st.Token, agents: map[string][]string{}, moved: map[string]bool{}}
	var names []string
	err = p.Files.List(name, nil, func(item storage.Item) bool {
		switch base, ok := strings.CutSuffix(item.Name, ending); {
		case !ok || item.Kind != storage.KindFile:
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
			in.agents[owner], in.moved[agent] = append(in.agents[owner], agent), true
		}
	}
	if err == nil && !st.Racy(now) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.projects[name] = in
	}
	return in, err
}

// agents returns the names of the subagents' sessions to show with a session, if it can be read.
func (p *Projects) agents(in *project, project, session string) []string {
	beside, ok := in.agents[session]
	file := path.Join(project, session+ending)
	st, err := p.Files.Stat(file)
	if !ok || err != nil {
		return nil
	}
	if !p.isOld(file) {
		return beside
	}
	p.mu.Lock()
	now := p.inFiles[file]
	p.mu.Unlock()
	if now == nil || now.token != st.Token {
		obj, err := p.Files.Open(file)
		if err != nil {
			return beside
		}
		defer obj.Close()
		now = &inFile{token: st.Token}
		if now.names, err = chainsIn(obj, st.Size); err == nil {
			p.mu.Lock()
			p.inFiles[file] = now
			p.mu.Unlock()
		}
	}
	return append(slices.Clip(beside), now.names...)
}

// isOld reports whether a session's file may have records of subagents, by its client's version.
func (p *Projects) isOld(file string) bool {
	st, err := p.Files.Stat(file)
	if err != nil || st.Size == 0 {
		return false
	}
	p.mu.Lock()
	known, ok := p.ages[file]
	p.mu.Unlock()
	if ok && known.device == st.Device && known.inode == st.Inode {
		return known.isOld
	}
	obj, err := p.Files.Open(file)
	if err != nil {
		return false
	}
	defer obj.Close()
	head := make([]byte, min(st.Size, nearSize))
	if err := storage.ReadFull(obj, head, 0); err != nil {
		return false
	}
	_, version, hasVersion := bytes.Cut(head, []byte(`"version"`))
	version = bytes.TrimLeft(version, `: "`)
	now := clientAge{st.Device, st.Inode, !isNew(string(version[:min(len(version), 8)]))}
	first := firstIn(head)
	p.mu.Lock()
	defer p.mu.Unlock()
	if hasVersion || len(head) == nearSize {
		p.ages[file] = now
	}
	if isName(first) { // later calls need them for all sessions
		p.firsts[file] = firstText{st.Device, st.Inode, first}
	}
	return now.isOld
}

// chainsIn returns the names of the sessions of subagents with records in a file.
func chainsIn(obj storage.Object, size int64) (names []string, err error) {
	if has, err := hasChains(obj, size); err != nil || !has {
		return nil, err
	}
	side := newChains()
	_, err = jsonl.Load(context.Background(), obj, jsonl.Position{}, size, func(u *jsonl.Unit) error {
		if u.Kind != jsonl.ObjectUnit || !bytes.Contains(u.Text, []byte(`"isSidechain"`)) {
			return nil
		}
		r := agents.Read(u.Text)
		uuid, _ := r.Member("uuid").Text()
		parent, _ := r.Member("parentUuid").Text()
		if isTrue(r.Member("isSidechain")) && side.add(uuid, parent) == uuid && isName(uuid) {
			names = append(names, chainPrefix+uuid+ending)
		}
		return nil
	})
	return names, err
}

// hasChains reports whether a file has records of subagents. It is as fast as reading, as a listing
// of the directory asks it of all files, most of which have none.
func hasChains(obj storage.Object, size int64) (bool, error) {
	const key = `"isSidechain":`
	buf := make([]byte, min(size, jsonl.ChunkSize)+int64(len(key))+8)
	for off, kept := int64(0), 0; off < size; {
		n := min(size-off, int64(len(buf)-kept))
		if err := storage.ReadFull(obj, buf[kept:int64(kept)+n], off); err != nil {
			return false, err
		}
		text := buf[:int64(kept)+n]
		for rest := text; ; {
			_, after, found := bytes.Cut(rest, []byte(key))
			if !found {
				break
			}
			if rest = after; bytes.HasPrefix(bytes.TrimLeft(after, " "), []byte("true")) {
				return true, nil
			}
		}
		kept, off = copy(buf, text[max(0, len(text)-len(key)-8):]), off+n
	}
	return false, nil
}

// isName reports whether an id can be a part of a file's name.
func isName(id string) bool { return storage.CheckName(id) == nil && !strings.Contains(id, "/") }

// isNew reports whether a client writes records of subagents into own files, as 2.1 does.
func isNew(version string) bool {
	return version != "" && !strings.HasPrefix(version, "0.") && !strings.HasPrefix(version, "1.") &&
		!strings.HasPrefix(version, "2.0.")
}

// place returns the file of a shown name, and whether the name is a virtual directory.
func (p *Projects) place(name string) (file string, isVirtual bool, err error) {
	parts := strings.Split(name, "/")
	n := len(parts)
	if n < 2 || n > 4 || n > 2 && parts[2] != subagents ||
		n == 2 && strings.HasSuffix(name, ending) && !isSubagent(parts[1]) {
		return name, false, nil
	}
	st, err := p.Files.Stat(name)
	if (n > 2 || st.Kind != storage.KindFile) && !storage.IsMissing(err) {
		return name, false, nil
	}
	in, err := p.project(parts[0])
	switch {
	case err != nil:
		return "", false, err
	case n == 2 && in.moved[parts[1]]:
		return "", false, fs.ErrNotExist
	}
	agents, session := p.agents(in, parts[0], parts[1]), path.Join(parts[0], parts[1]+ending)
	switch {
	case n < 4 && len(agents) > 0:
		return session, true, nil
	case n < 4 || !slices.Contains(agents, parts[3]):
		return name, false, nil
	case in.moved[parts[3]]:
		return path.Join(parts[0], parts[3]), false, nil
	}
	return session, false, nil
}

// Stat implements storage.Files.
func (p *Projects) Stat(name string) (storage.Stat, error) {
	file, isVirtual, err := p.place(name)
	if err != nil {
		return storage.Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	st, err := p.Files.Stat(file)
	if isVirtual {
		st.Kind, st.Mode, st.Size = storage.KindDir, storage.DirMode, 0
	}
	return st, err
}

// Open implements storage.Files.
func (p *Projects) Open(name string) (storage.Object, error) {
	file, isVirtual, err := p.place(name)
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	case isVirtual:
		return nil, &fs.PathError{Op: "open", Path: name, Err: storage.ErrNotRegular}
	}
	return p.Files.Open(file)
}
