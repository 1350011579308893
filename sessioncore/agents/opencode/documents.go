package opencode

import (
	"io"
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// documents are the sessions of clients before 1.2: a JSON document for each session, message and part.
// A newer client may have copied them into its database, or not.
type documents struct {
	files  storage.Files
	cached agents.Cached[*session]
}

const (
	documentEnding = ".json"
	// maxDocument bounds a document, in bytes.
	maxDocument = 64 << 20
)

// projects returns the directories with documents of sessions.
func (d *documents) projects() (dirs []string) {
	top := path.Join(documentsDir, sessionDir)
	items, _ := storage.List(d.files, top) // there may be none
	for _, item := range items {
		if item.Kind == storage.KindDir {
			dirs = append(dirs, path.Join(top, item.Name))
		}
	}
	return dirs
}

// state returns a token that changes with the names of sessions.
func (d *documents) state() (token storage.Token) {
	top, err := d.files.Stat(path.Join(documentsDir, sessionDir))
	if err != nil {
		return token
	}
	token = top.Token
	for _, dir := range d.projects() {
		st, err := d.files.Stat(dir)
		if err == nil {
			token = token.With(st.Token)
		}
	}
	return token
}

// readSessions adds the sessions to a list, without those that it has.
func (d *documents) readSessions(l *list) {
	for _, dir := range d.projects() {
		items, _ := storage.List(d.files, dir)
		for _, item := range items {
			id, isDocument := strings.CutSuffix(item.Name, documentEnding)
			if !isDocument || item.Kind != storage.KindFile || l.sessions[id] != nil {
				continue
			}
			name := path.Join(dir, item.Name)
			s, err := d.cached.Get(d.files, name, func(storage.Stat) (*session, error) { return d.readSession(name, id) })
			if err == nil {
				l.add(s)
			}
		}
	}
}

// readSession reads the document of a session.
func (d *documents) readSession(name, id string) (*session, error) {
	text, err := storage.ReadFile(d.files, name, maxDocument)
	if err != nil {
		return nil, err
	}
	v := agents.Read(agents.ObjectIn(text))
	s := &session{
		id:      id,
		created: agents.Count(v.Member("time").Member("created")),
		updated: agents.Count(v.Member("time").Member("updated")),
	}
	s.directory, _ = v.Member("directory").Text()
	s.title, _ = v.Member("title").Text()
	s.version, _ = v.Member("version").Text()
	s.parent, _ = v.Member("parentID").Text()
	s.revert = string(v.Member("revert"))
	s.metadata = string(v.Member("metadata"))
	return s, nil
}

// write writes the text of a session.
func (d *documents) write(s *session, out io.Writer) error {
	var lines []*messageLine
	err := d.each(path.Join(documentsDir, "message", s.id), func(id string, text []byte) error {
		info := rawjson.Value(text)
		m := &messageLine{id: id, created: agents.Count(info.Member("time").Member("created")), info: info}
		lines = append(lines, m)
		return d.each(path.Join(documentsDir, "part", id), func(id string, text []byte) error {
			m.parts = append(m.parts, messagePart{id: id, data: text})
			return nil
		})
	})
	if err != nil {
		return err
	}
	_, err = s.write(lines, nil, out)
	return err
}

// each calls f for each document in a directory, which may be missing.
func (d *documents) each(dir string, f func(id string, text []byte) error) error {
	items, err := storage.List(d.files, dir)
	if storage.IsMissing(err) {
		return nil
	}
	for _, item := range items {
		id, isDocument := strings.CutSuffix(item.Name, documentEnding)
		if !isDocument || item.Kind != storage.KindFile {
			continue
		}
		text, err := storage.ReadFile(d.files, path.Join(dir, item.Name), maxDocument)
		if storage.IsMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		v := agents.ObjectIn(text)
		if v == nil {
			continue
		}
		err = f(id, v)
		if err != nil {
			return err
		}
	}
	return err
}
