package opencode

import (
	"bytes"
	"io"
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

// keptTexts are copies of sessions' texts that sessionfs keep made, as DIRECTORY/ID.jsonl in textsDir, and those of subagents
// as home shows them. A session counts once it is gone from the database.
type keptTexts struct {
	files  storage.Files
	cached agents.Cached[session]
}

const (
	textsDir = agents.KeptTexts
	// maxFacts bounds the line of a session's facts, in bytes.
	maxFacts = 64 << 10
)

// state returns a token that changes with the names of sessions.
func (k *keptTexts) state() (token storage.Token) {
	_ = k.eachDir(func(dir string) error {
		st, err := k.files.Stat(dir)
		if err == nil {
			token = token.With(st.Token)
		}
		return nil
	})
	return token
}

// eachDir calls f for textsDir and each directory of sessions in it, if it is there.
func (k *keptTexts) eachDir(f func(dir string) error) error {
	items, err := storage.List(k.files, textsDir)
	if storage.IsMissing(err) {
		return nil
	}
	if err == nil {
		err = f(textsDir)
	}
	for _, item := range items {
		if err == nil && item.Kind == storage.KindDir {
			err = f(path.Join(textsDir, item.Name))
		}
	}
	return err
}

// readSessions adds the sessions to a list, without those that it has.
func (k *keptTexts) readSessions(l *list) error {
	return k.eachDir(func(dir string) error { return k.readDir(l, dir) })
}

// readDir adds the sessions in a directory, and those of their subagents.
func (k *keptTexts) readDir(l *list, dir string) error {
	items, err := storage.List(k.files, dir)
	if err != nil {
		return err
	}
	for _, item := range items {
		name := path.Join(dir, item.Name)
		id, isText := strings.CutSuffix(item.Name, ending)
		switch {
		case item.Kind == storage.KindDir && strings.HasPrefix(item.Name, idPrefix):
			err = k.readDir(l, path.Join(name, agents.Subagents))
			if err != nil && !storage.IsMissing(err) {
				return err
			}
		case item.Kind == storage.KindFile && isText && l.sessions[id] == nil:
			s, err := k.read(name)
			if err == nil && s.id == id {
				l.add(s)
			}
		}
	}
	return nil
}

// read returns the session of a text, by the facts in its first line.
func (k *keptTexts) read(name string) (*session, error) {
	facts, err := k.cached.OfHead(k.files, name, maxFacts, func(head []byte) (session, error) {
		line, _, _ := bytes.Cut(head, []byte("\n"))
		return factsIn(agents.Read(agents.Read(agents.ObjectIn(line)).Member("session"))), nil
	})
	if err != nil {
		return nil, err
	}
	st, err := k.files.Stat(name)
	facts.updated = st.Modified / nanoseconds
	facts.text = name
	return &facts, err
}

// factsIn returns the session of the object that appendFacts appends.
func factsIn(facts agents.Object) (s session) {
	s.created = agents.Count(facts.Member("created"))
	s.id, _ = facts.Member("id").Text()
	s.directory, _ = facts.Member("directory").Text()
	s.title, _ = facts.Member("title").Text()
	s.version, _ = facts.Member("version").Text()
	s.parent, _ = facts.Member("parent").Text()
	s.metadata = string(facts.Member("metadata"))
	return s
}

// write writes the text of a session.
func (k *keptTexts) write(s *session, out io.Writer) error {
	return agents.CopyOf(k.files, s.text)(out)
}
