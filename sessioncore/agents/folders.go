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
	// ID returns the session of a document, by its name without the ending.
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

// Split returns the ids of the session and of the subagent of a shown name, each may be "".
func (f *Folders) Split(name string) (session, subagent string) {
	dir, rest, _ := strings.Cut(strings.TrimSuffix(name, sessionEnding), "/")
	session, subagent, _ = strings.Cut(rest, "/")
	if dir == f.Old && session != "" {
		session = f.ID(session)
	}
	return session, subagent
}

// IsSubagent reports whether a subagent's id can be the name of its session: one that is short, not hidden, and stays in
// its directory.
func IsSubagent(id string) bool {
	err := storage.CheckName(id)
	if err != nil || len(id) > maxSubagent {
		return false
	}
	isHidden := id[0] == '.'
	return !isHidden && !strings.Contains(id, "/")
}

// isFile reports whether a name of the agent's is a regular file. An error counts as none.
func (f *Folders) isFile(name string) bool {
	st, err := f.Raw.Stat(name)
	return err == nil && st.Kind == storage.KindFile
}

// file returns the file of a session: DIR/ID/FILE, or else DIR/ID.jsonl, which need not exist.
func (f *Folders) file(session string) string {
	file := path.Join(f.Dir, session, f.File)
	if f.isFile(file) {
		return file
	}
	return path.Join(f.Dir, session) + sessionEnding
}

// SessionFile returns the file of a session.
func (f *Folders) SessionFile(session string) string { return f.file(session) }

// Part implements Sharer. A session itself needs all records of its file.
func (f *Folders) Part(name string, obj storage.Object) storage.Object {
	dir, _, _ := strings.Cut(name, "/")
	session, subagent := f.Split(name)
	if dir != f.Dir || subagent == "" || f.Raw == nil {
		return obj
	}
	return f.Inside.Part(f.file(session), subagent, obj)
}

// real returns the file or directory of a shown name:
//
//	OLD/SESSION.jsonl             OLD/SESSION.json, unless the session has a file in DIR
//	DIR/SESSION.jsonl             the file of the session
//	DIR/SESSION/SUBAGENT.jsonl    the file of the session, if it has records of the subagent
//	DIR/SESSION                   the file of the session, if it has records of subagents
func (f *Folders) real(name string) (string, storage.Kind, error) {
	if name == "" || name == f.Dir || name == f.Old {
		return name, storage.KindDir, nil
	}
	session, subagent := f.Split(name)
	dir, below, _ := strings.Cut(name, "/")
	base, isFile := strings.CutSuffix(below, sessionEnding)
	isSession := isFile && subagent == ""
	isOfSubagents := !isFile && subagent == ""
	isSubagent := isFile && subagent != ""
	switch {
	case dir == f.Old && isSession && !f.isFile(f.file(session)):
		return path.Join(dir, base) + documentEnding, storage.KindFile, nil
	case dir == f.Dir && isSession:
		return f.file(session), storage.KindFile, nil
	case dir == f.Dir && (isSubagent || isOfSubagents):
		return f.realInside(name, f.file(session), subagent, isFile)
	}
	return "", 0, Missing(name)
}

// realInside is real for the session of a subagent in a file (isFile), or for the directory of all of these. It reads the
// file.
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
func (f *Folders) names(dir string) ([]storage.Item, error) {
	session, _ := f.Split(dir)
	if session != "" {
		return f.subagents(session)
	}
	below, err := storage.List(f.Raw, dir)
	if dir == f.Dir {
		return f.sessions(below), err
	}
	var items []storage.Item
	for _, item := range below {
		isHidden := item.Name[0] == '.'
		isShownDir := item.Name == f.Dir || item.Name == f.Old
		document, isDocument := strings.CutSuffix(item.Name, documentEnding)
		switch {
		case isHidden:
		case dir == "" && item.Kind == storage.KindDir && isShownDir:
			items = append(items, storage.Item{Name: item.Name, Kind: storage.KindDir})
		case dir == f.Old && item.Kind == storage.KindFile && isDocument:
			items = append(items, storage.Item{Name: document + sessionEnding, Kind: storage.KindFile})
		}
	}
	return items, err
}

// subagents returns the names of the sessions of a session's subagents.
func (f *Folders) subagents(session string) ([]storage.Item, error) {
	ids, err := f.Inside.Subagents(f.Raw, f.file(session))
	var items []storage.Item
	for _, id := range ids {
		items = append(items, storage.Item{Name: id + sessionEnding, Kind: storage.KindFile})
	}
	return items, err
}

// sessions returns the names of the sessions among the items of Dir, and notes the directories that may still
// become sessions.
func (f *Folders) sessions(below []storage.Item) []storage.Item {
	var items []storage.Item
	var empty []string
	for _, item := range below {
		isHidden := item.Name[0] == '.'
		if isHidden {
			continue
		}
		name := path.Join(f.Dir, item.Name)
		session, hasEnding := strings.CutSuffix(item.Name, sessionEnding)
		isSession := false
		switch item.Kind {
		case storage.KindDir:
			isSession = f.isFile(path.Join(name, f.File))
			if !isSession {
				empty = append(empty, name)
			}
		case storage.KindFile:
			isSession = hasEnding && f.file(session) == name
		}
		if isSession {
			items = append(items,
				storage.Item{Name: session + sessionEnding, Kind: storage.KindFile},
				storage.Item{Name: session, Kind: storage.KindDir})
		}
	}
	f.empty.Set(f.Dir, empty)
	return items
}

// Stat implements storage.Files. A session's first file changes the directory's state too.
func (f *Folders) Stat(name string) (storage.Stat, error) {
	st, err := f.Renamed.Stat(name)
	if name == f.Dir && err == nil {
		st = f.empty.With(f.Raw, name, st)
	}
	return st, err
}
