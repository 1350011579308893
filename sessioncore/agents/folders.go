package agents

import (
	"path"
	"strings"

	"sessionfs/sessioncore/storage"
)

// Folders shows an agent's directory with a directory for each session: DIR/ID/FILE is
// DIR/ID.jsonl, and so is DIR/ID.jsonl of old clients without such a file. Subagents with records
// in it are DIR/ID/SUBAGENT.jsonl. Documents of older clients, OLD/NAME.json, are OLD/NAME.jsonl
// until the session has a file in DIR.
type Folders struct {
	Renamed   // Init sets all but Raw
	Dir, File string
	Old       string
	// ID returns the session of a document, whose name is without its ending.
	ID     func(document string) string
	Inside Inside

	empty Inner // directories of sessions without a file
}

const (
	documentEnding = ".json"
	// maxSubagent bounds the name of a subagent's session, in bytes.
	maxSubagent = 200
)

// Init must be called before other methods.
func (f *Folders) Init() {
	f.Names = f.names
	f.Real = f.real
}

// Split returns the ids of the session and of the subagent of a name, each may be "".
func (f *Folders) Split(name string) (session, subagent string) {
	dir, rest, _ := strings.Cut(strings.TrimSuffix(name, sessionEnding), "/")
	session, subagent, _ = strings.Cut(rest, "/")
	if dir == f.Old && session != "" {
		session = f.ID(session)
	}
	return session, subagent
}

// IsSubagent reports whether a subagent's id can be the name of its session.
func IsSubagent(id string) bool {
	return storage.CheckName(id) == nil && len(id) <= maxSubagent && !strings.Contains(id, "/") && id[0] != '.'
}

func (f *Folders) isFile(name string) bool {
	st, err := f.Raw.Stat(name)
	return err == nil && st.Kind == storage.KindFile
}

// file returns the file of a session.
func (f *Folders) file(session string) string {
	file := path.Join(f.Dir, session, f.File)
	if f.isFile(file) {
		return file
	}
	return path.Join(f.Dir, session) + sessionEnding
}

// SessionFile returns the file of a session.
func (f *Folders) SessionFile(session string) string { return f.file(session) }

// Part implements Sharer.
func (f *Folders) Part(name string, obj storage.Object) storage.Object {
	dir, _, _ := strings.Cut(name, "/")
	session, subagent := f.Split(name)
	if dir != f.Dir || subagent == "" || f.Raw == nil {
		return obj
	}
	return f.Inside.Part(f.file(session), subagent, obj)
}

// real returns the file or directory of a shown name.
func (f *Folders) real(name string) (string, storage.Kind, error) {
	if name == "" || name == f.Dir || name == f.Old {
		return name, storage.KindDir, nil
	}
	session, subagent := f.Split(name)
	dir, below, _ := strings.Cut(name, "/")
	base, isFile := strings.CutSuffix(below, sessionEnding)
	switch {
	case dir == f.Old && isFile && subagent == "" && !f.isFile(f.file(session)):
		return path.Join(dir, base) + documentEnding, storage.KindFile, nil
	case dir == f.Dir && isFile && subagent == "":
		return f.file(session), storage.KindFile, nil
	case dir == f.Dir && (isFile || subagent == ""):
		return f.realInside(name, f.file(session), subagent, isFile)
	}
	return "", 0, Missing(name)
}

// realInside is real for the session of a subagent in a file, or for the directory of all of these.
func (f *Folders) realInside(name, file, subagent string, isFile bool) (string, storage.Kind, error) {
	if isFile {
		has, err := f.Inside.Has(f.Raw, file, subagent)
		if err == nil && has {
			return file, storage.KindFile, nil
		}
		return "", 0, Missing(name)
	}
	ids, err := f.Inside.Subagents(f.Raw, file)
	if err == nil && len(ids) > 0 {
		return file, storage.KindDir, nil
	}
	return "", 0, Missing(name)
}

// names returns the names in a directory: for each session its file, and the directory that may
// have its subagents. Only a scan of the file detects some.
func (f *Folders) names(dir string) (items []storage.Item, err error) {
	add := func(kind storage.Kind, name string) {
		items = append(items, storage.Item{Name: name, Kind: kind})
	}
	session, _ := f.Split(dir)
	if session != "" {
		ids, err := f.Inside.Subagents(f.Raw, f.file(session))
		for _, id := range ids {
			add(storage.KindFile, id+sessionEnding)
		}
		return items, err
	}
	inDir, err := storage.List(f.Raw, dir)
	var empty []string
	for _, item := range inDir {
		name := path.Join(dir, item.Name)
		base := strings.TrimSuffix(item.Name, sessionEnding)
		document, isDocument := strings.CutSuffix(item.Name, documentEnding)
		switch {
		case item.Name[0] == '.':
		case dir == "" && item.Kind == storage.KindDir && (name == f.Dir || name == f.Old):
			add(item.Kind, name)
		case dir == f.Old && isDocument && item.Kind == storage.KindFile:
			add(item.Kind, document+sessionEnding)
		case dir != f.Dir:
		case item.Kind == storage.KindDir && !f.isFile(path.Join(name, f.File)):
			empty = append(empty, name)
		case item.Kind == storage.KindDir, base != item.Name && item.Kind == storage.KindFile && f.file(base) == name:
			add(storage.KindFile, base+sessionEnding)
			add(storage.KindDir, base)
		}
	}
	if dir == f.Dir {
		f.empty.Set(dir, empty)
	}
	return items, err
}

// Stat implements storage.Files. A session's first file changes the directory's state too.
func (f *Folders) Stat(name string) (storage.Stat, error) {
	st, err := f.Renamed.Stat(name)
	if name == f.Dir && err == nil {
		st = f.empty.With(f.Raw, name, st)
	}
	return st, err
}
