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

// projects returns the directories with documents of sessions, none if there are no documents.
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

// state returns a token that changes with the names of sessions, the zero Token if there are no documents.
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

// readSessions adds the sessions to a list, without those that it has. Documents that cannot be read are left out.
func (d *documents) readSessions(l *list) {
	for _, dir := range d.projects() {
		items, _ := storage.List(d.files, dir) // it may be gone
		for _, item := range items {
			id, isDocument := idOfDocument(item)
			if !isDocument || l.sessions[id] != nil {
				continue
			}
			name := path.Join(dir, item.Name)
			s, err := d.cached.Get(d.files, name, func(storage.Stat) (*session, error) {
				return d.readSession(name, id)
			})
			if err == nil {
				l.add(s)
			}
		}
	}
}

// idOfDocument returns the id that the name of a document has, and whether an item is a document.
func idOfDocument(item storage.Item) (id string, ok bool) {
	id, hasEnding := strings.CutSuffix(item.Name, documentEnding)
	return id, hasEnding && item.Kind == storage.KindFile
}

// readSession reads the document of a session. One that is no JSON object is a session without facts.
func (d *documents) readSession(name, id string) (*session, error) {
	text, err := storage.ReadFile(d.files, name, maxDocument)
	if err != nil {
		return nil, err
	}
	document := agents.Read(agents.ObjectIn(text))
	times := document.Member("time")
	s := &session{
		id:       id,
		created:  agents.Count(times.Member("created")),
		updated:  agents.Count(times.Member("updated")),
		revert:   string(document.Member("revert")),
		metadata: string(document.Member("metadata")),
	}
	s.directory, _ = document.Member("directory").Text()
	s.title, _ = document.Member("title").Text()
	s.version, _ = document.Member("version").Text()
	s.parent, _ = document.Member("parentID").Text()
	return s, nil
}

// write writes the text of a session to out.
func (d *documents) write(s *session, out io.Writer) error {
	messages, err := d.readMessages(s.id)
	if err != nil {
		return err
	}
	_, err = s.write(messages, nil, out)
	return err
}

// readMessages returns the messages of a session with their parts, in no order.
func (d *documents) readMessages(session string) (messages []*messageLine, err error) {
	dir := path.Join(documentsDir, "message", session)
	err = d.each(dir, func(id string, info rawjson.Value) error {
		m := &messageLine{id: id, info: info}
		m.created = agents.Count(info.Member("time").Member("created"))
		parts, err := d.readParts(id)
		m.parts = parts
		messages = append(messages, m)
		return err
	})
	return messages, err
}

// readParts returns the parts of a message, in no order.
func (d *documents) readParts(message string) (parts []messagePart, err error) {
	dir := path.Join(documentsDir, "part", message)
	err = d.each(dir, func(id string, data rawjson.Value) error {
		parts = append(parts, messagePart{id: id, data: data})
		return nil
	})
	return parts, err
}

// each calls f for each document in a directory, until f fails. The directory may be missing. Documents that are gone
// meanwhile, or are no JSON objects, are left out.
func (d *documents) each(dir string, f func(id string, object rawjson.Value) error) error {
	items, err := storage.List(d.files, dir)
	if storage.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, item := range items {
		id, isDocument := idOfDocument(item)
		if !isDocument {
			continue
		}
		text, err := storage.ReadFile(d.files, path.Join(dir, item.Name), maxDocument)
		if storage.IsMissing(err) {
			continue
		}
		if err != nil {
			return err
		}
		object := agents.ObjectIn(text)
		if object == nil {
			continue
		}
		err = f(id, object)
		if err != nil {
			return err
		}
	}
	return nil
}
