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

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// Projects shows Claude Code's projects with all subagents where newer clients have them, in PROJECT/ID/subagents/. Older
// clients write agent-ID.jsonl beside the session, which its records name, and the oldest ones write the records of subagents
// into the session's own file: as sidechain-UUID.jsonl it is shown once more for each of them.
type Projects struct {
	storage.Files

	mu      sync.Mutex // guards what follows
	owners  map[string]ownedFile
	beside  map[string]*besides
	inFiles map[string]*inFile
}

// ownedFile is a file, and the session that it belongs to.
type ownedFile struct {
	device, inode uint64
	owner         string
}

// besides are the sessions of subagents that lie in a project's directory.
type besides struct {
	token storage.Token
	of    map[string][]string // by the session that they belong to: their names
}

// inFile is which subagents have records in a session's file.
type inFile struct {
	token  storage.Token
	chains chains
	names  []string // of their sessions
}

const (
	// ownerSize is how much of a subagent's file is read for the session that it belongs to.
	ownerSize = 64 << 10
	// headSize is how much of a session's file is read for the version of its client.
	headSize = 16 << 10
	// maxInFile is how many files are remembered.
	maxInFile = 1024
)

// NewProjects returns the projects in files.
func NewProjects(files storage.Files) *Projects {
	return &Projects{Files: files, owners: map[string]ownedFile{}, beside: map[string]*besides{}, inFiles: map[string]*inFile{}}
}

// List implements storage.Files.
func (p *Projects) List(dir string, only []string, f func(storage.Item) bool) error {
	project, session, ok := strings.Cut(dir, "/")
	if dir == "" || only != nil && !ok {
		return p.Files.List(dir, only, f)
	}
	if !ok {
		return p.listProject(dir, f)
	}
	session, isSubagents := strings.CutSuffix(session, "/"+subagents)
	if strings.Contains(session, "/") {
		return p.Files.List(dir, only, f)
	}
	if only != nil {
		return storage.ListOnly(p, dir, only, f)
	}
	moved, err := p.moved(project, session)
	if err != nil {
		return err
	}
	if len(moved) > 0 && !isSubagents {
		moved = []string{subagents}
	}
	there, stopped := map[string]bool{}, false
	err = p.Files.List(dir, nil, func(item storage.Item) bool {
		there[item.Name] = true
		stopped = !f(item)
		return !stopped
	})
	if err != nil && !(storage.IsMissing(err) && len(moved) > 0) || stopped {
		return err
	}
	moved = slices.DeleteFunc(moved, func(name string) bool { return there[name] })
	return storage.ListOnly(p, dir, moved, f)
}

// listProject lists a project without the subagents' sessions that are shown elsewhere, and with the directories that they are
// shown in.
func (p *Projects) listProject(dir string, f func(storage.Item) bool) error {
	var agents, sessions []string
	there, stopped := map[string]bool{}, false
	err := p.Files.List(dir, nil, func(item storage.Item) bool {
		switch name, isFile := strings.CutSuffix(item.Name, ending); {
		case isSubagent(item.Name):
			agents = append(agents, item.Name)
			return true
		case isFile && item.Kind == storage.KindFile:
			sessions = append(sessions, name)
		}
		there[item.Name] = true
		stopped = !f(item)
		return !stopped
	})
	if err != nil || stopped {
		return err
	}
	agents = slices.DeleteFunc(agents, func(name string) bool { return p.isMoved(dir, name) })
	madeUp := slices.DeleteFunc(sessions, func(name string) bool {
		moved, err := p.moved(dir, name)
		return there[name] || err != nil || len(moved) == 0
	})
	return storage.ListOnly(p, dir, append(agents, madeUp...), f)
}

// isMoved reports whether a file of a project is shown with the session that it belongs to.
func (p *Projects) isMoved(project, name string) bool {
	if !isSubagent(name) {
		return false
	}
	owner := p.owner(path.Join(project, name))
	if owner == "" {
		return false
	}
	st, err := p.Files.Stat(path.Join(project, owner+ending))
	return err == nil && st.Kind == storage.KindFile
}

// owner returns the session that a subagent's file belongs to, "" if it does not tell.
func (p *Projects) owner(name string) (owner string) {
	st, err := p.Files.Stat(name)
	if err != nil {
		return ""
	}
	p.mu.Lock()
	known := p.owners[name]
	p.mu.Unlock()
	if known.device == st.Device && known.inode == st.Inode {
		return known.owner
	}
	obj, err := p.Files.Open(name)
	if err != nil {
		return ""
	}
	defer obj.Close()
	_ = jsonl.LoadFirst(context.Background(), obj, min(st.Size, ownerSize), func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit {
			owner, _ = rawjson.Value(u.Text).Member("sessionId").Text()
		}
		if owner != "" {
			return jsonl.ErrStop
		}
		return nil
	})
	if storage.CheckName(owner) != nil || strings.Contains(owner, "/") || owner+ending == path.Base(name) {
		owner = ""
	}
	if owner != "" {
		p.mu.Lock()
		p.owners[name] = ownedFile{st.Device, st.Inode, owner}
		p.mu.Unlock()
	}
	return owner
}

// moved returns the names of the subagents' sessions that are shown with a session and lie elsewhere.
func (p *Projects) moved(project, session string) ([]string, error) {
	beside, err := p.besides(project)
	if err != nil {
		return nil, err
	}
	inFile, err := p.chainsOf(path.Join(project, session+ending))
	return append(slices.Clone(beside.of[session]), inFile...), err
}

// besides returns the subagents' sessions in a project's directory.
func (p *Projects) besides(project string) (*besides, error) {
	now := time.Now().UnixNano()
	st, err := p.Files.Stat(project)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	b := p.beside[project]
	p.mu.Unlock()
	if b != nil && b.token == st.Token {
		return b, nil
	}
	b = &besides{token: st.Token, of: map[string][]string{}}
	var names []string
	err = p.Files.List(project, nil, func(item storage.Item) bool {
		if item.Kind == storage.KindFile && isSubagent(item.Name) && strings.HasSuffix(item.Name, ending) {
			names = append(names, item.Name)
		}
		return true
	})
	known := true
	for _, name := range names {
		owner := p.owner(path.Join(project, name))
		if b.of[owner] = append(b.of[owner], name); owner == "" {
			known = false // it may tell later
		}
	}
	if err == nil && known && !st.Racy(now) {
		p.mu.Lock()
		p.beside[project] = b
		p.mu.Unlock()
	}
	return b, err
}

// chainsOf returns the names of the sessions of subagents whose records are in a session's file.
func (p *Projects) chainsOf(file string) ([]string, error) {
	st, err := p.Files.Stat(file)
	if storage.IsMissing(err) || err == nil && st.Kind != storage.KindFile {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	before := p.inFiles[file]
	p.mu.Unlock()
	if before != nil && before.token == st.Token {
		return before.names, nil
	}
	obj, err := p.Files.Open(file)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	if st, err = obj.Stat(); err != nil {
		return nil, err
	}
	now := &inFile{token: st.Token, chains: newChains()}
	if err := now.read(obj, st.Size); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.inFiles) >= maxInFile {
		clear(p.inFiles)
	}
	p.inFiles[file] = now
	return now.names, nil
}

// read looks for records of subagents. Clients that begin a session today write them elsewhere.
func (i *inFile) read(obj storage.Object, size int64) error {
	head := make([]byte, min(size, headSize))
	if err := storage.ReadFull(obj, head, 0); err != nil {
		return err
	}
	_, version, _ := bytes.Cut(head, []byte(`"version"`))
	if version = bytes.TrimLeft(version, `: "`); isNew(string(version[:min(len(version), 8)])) {
		return nil
	}
	_, err := jsonl.Load(context.Background(), obj, jsonl.Position{}, size, func(u *jsonl.Unit) error {
		if u.Kind != jsonl.ObjectUnit || !bytes.Contains(u.Text, []byte(`"isSidechain"`)) {
			return nil
		}
		r := foreign.Read(u.Text)
		uuid, _ := r.Member("uuid").Text()
		parent, _ := r.Member("parentUuid").Text()
		if uuid != "" && isTrue(r.Member("isSidechain")) && i.chains.add(uuid, parent) == uuid && storage.CheckName(uuid) == nil && !strings.Contains(uuid, "/") {
			i.names = append(i.names, chainPrefix+uuid+ending)
		}
		return nil
	})
	i.chains = chains{}
	return err
}

// isNew reports whether a client writes subagents' records into files of their own: 2.1 and later, and some before.
func isNew(version string) bool {
	return version != "" && !strings.HasPrefix(version, "0.") && !strings.HasPrefix(version, "1.") && !strings.HasPrefix(version, "2.0.")
}

// place returns the name of the file that has what is shown under a name, and whether a directory of that name is made up.
func (p *Projects) place(name string) (file string, madeUp bool, err error) {
	parts := strings.Split(name, "/")
	switch n := len(parts); {
	case n == 2 && p.isMoved(parts[0], parts[1]):
		return "", false, fs.ErrNotExist
	case n < 2 || n > 4 || n > 2 && parts[2] != subagents || n == 4 && !isSubagent(parts[3]) || n == 2 && strings.HasSuffix(name, ending):
		return name, false, nil
	}
	if _, err := p.Files.Stat(name); !storage.IsMissing(err) {
		return name, false, nil
	}
	moved, err := p.moved(parts[0], parts[1])
	if err != nil || len(moved) == 0 {
		return name, false, err
	}
	session := path.Join(parts[0], parts[1]+ending)
	switch {
	case len(parts) < 4:
		return session, true, nil
	case !slices.Contains(moved, parts[3]):
		return name, false, nil
	case strings.HasPrefix(parts[3], chainPrefix):
		return session, false, nil
	}
	return path.Join(parts[0], parts[3]), false, nil
}

// Stat implements storage.Files.
func (p *Projects) Stat(name string) (storage.Stat, error) {
	file, madeUp, err := p.place(name)
	if err != nil {
		return storage.Stat{}, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	st, err := p.Files.Stat(file)
	if madeUp {
		st.Kind, st.Mode, st.Size = storage.KindDir, storage.DirMode, 0
	}
	return st, err
}

// Open implements storage.Files.
func (p *Projects) Open(name string) (storage.Object, error) {
	file, madeUp, err := p.place(name)
	switch {
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	case madeUp:
		return nil, &fs.PathError{Op: "open", Path: name, Err: storage.ErrNotRegular}
	}
	return p.Files.Open(file)
}
