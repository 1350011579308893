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

// state returns a token that changes with the names of sessions, but for the names of subagents' ones: these were kept with
// their caller. A directory that cannot be read now is left out.
func (k *keptTexts) state() (token storage.Token) {
	dirs, _ := k.dirs()
	for _, dir := range dirs {
		st, err := k.files.Stat(dir)
		if err == nil {
			token = token.With(st.Token)
		}
	}
	return token
}

// dirs returns textsDir and the directories in it, none if it is missing.
func (k *keptTexts) dirs() (dirs []string, err error) {
	items, err := storage.List(k.files, textsDir)
	if storage.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	dirs = []string{textsDir}
	for _, item := range items {
		if item.Kind == storage.KindDir {
			dirs = append(dirs, path.Join(textsDir, item.Name))
		}
	}
	return dirs, nil
}

// readSessions adds the sessions to a list, without those that it has.
func (k *keptTexts) readSessions(l *list) error {
	dirs, err := k.dirs()
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		err := k.readDir(l, dir)
		if err != nil {
			return err
		}
	}
	return nil
}

// readDir adds the sessions in a directory, and those of their subagents, which may have subagents too. A text that cannot
// be read, or is another session's by its first line, is left out.
func (k *keptTexts) readDir(l *list, dir string) error {
	items, err := storage.List(k.files, dir)
	if err != nil {
		return err
	}
	for _, item := range items {
		name := path.Join(dir, item.Name)
		switch item.Kind {
		case storage.KindDir:
			err := k.readSubagents(l, name)
			if err != nil {
				return err
			}
		case storage.KindFile:
			k.addText(l, name)
		}
	}
	return nil
}

// readSubagents adds the sessions of subagents in the directory of a session, if it is one.
func (k *keptTexts) readSubagents(l *list, dir string) error {
	if !strings.HasPrefix(path.Base(dir), idPrefix) {
		return nil
	}
	err := k.readDir(l, path.Join(dir, agents.Subagents))
	if storage.IsMissing(err) {
		return nil
	}
	return err
}

// addText adds the session of a file, if it is a text of a session that the list lacks.
func (k *keptTexts) addText(l *list, name string) {
	id, isText := strings.CutSuffix(path.Base(name), ending)
	if !isText || l.sessions[id] != nil {
		return
	}
	s, err := k.read(name)
	if err == nil && s.id == id {
		l.add(s)
	}
}

// read returns the session of a text, by the facts in its first line. Its time is the one of the file.
func (k *keptTexts) read(name string) (*session, error) {
	facts, err := k.cached.OfHead(k.files, name, maxFacts, func(head []byte) (session, error) {
		line, _, _ := bytes.Cut(head, []byte("\n"))
		first := agents.Read(agents.ObjectIn(line))
		return factsIn(agents.Read(first.Member("session"))), nil
	})
	if err != nil {
		return nil, err
	}
	st, err := k.files.Stat(name)
	if err != nil {
		return nil, err
	}
	facts.updated = st.Modified / nanoseconds
	facts.text = name
	return &facts, nil
}

// factsIn returns the session of the object that appendFacts appends. Of an object without them it has no id.
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

// write writes the kept text of a session to out.
func (k *keptTexts) write(s *session, out io.Writer) error {
	return agents.CopyOf(k.files, s.text)(out)
}
