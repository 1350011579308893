package kimi

import (
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

const (
	sessionsDir, agentsDir, mainAgent = "sessions", "agents", "main"

	logName, stateName = "wire.jsonl", "state.json"
	prefix, ending     = "session_", ".jsonl"
)

// home is ~/.kimi-code: sessions/WORKSPACE/SESSION/agents/main/wire.jsonl is shown as
// WORKSPACE/SESSION.jsonl, and agents/AGENT/wire.jsonl of a subagent as
// WORKSPACE/SESSION/subagents/AGENT.jsonl.
type home struct {
	agents.Renamed
	states agents.Texts
	empty  agents.Inner // directories of sessions without a log
}

func newHome(files storage.Files) *home {
	h := &home{}
	h.Raw = files
	h.Names = h.names
	h.Real = h.real
	return h
}

// logOf returns the log of an agent in the directory of a session.
func logOf(session, agent string) string {
	return path.Join(sessionsDir, session, agentsDir, agent, logName)
}

// real returns the file or directory of a shown name.
func (h *home) real(name string) (string, storage.Kind, error) {
	parts := strings.Split(name, "/")
	base, isFile := strings.CutSuffix(name, ending)
	switch {
	case name == "" || len(parts) == 1:
		return path.Join(sessionsDir, name), storage.KindDir, nil
	case !strings.HasPrefix(parts[1], prefix):
	case len(parts) == 2 && isFile:
		return logOf(base, mainAgent), storage.KindFile, nil
	case len(parts) == 2:
		return path.Join(sessionsDir, name), storage.KindDir, nil
	case parts[2] != agents.Subagents:
	case len(parts) == 3:
		return path.Join(sessionsDir, parts[0], parts[1], agentsDir), storage.KindDir, nil
	case len(parts) == 4 && isFile && path.Base(base) != mainAgent:
		return logOf(path.Join(parts[0], parts[1]), path.Base(base)), storage.KindFile, nil
	}
	return "", 0, agents.Missing(name)
}

// names returns the names in a directory.
func (h *home) names(dir string) ([]storage.Item, error) {
	at, _, err := h.real(dir)
	if err != nil {
		return nil, err
	}
	below, err := storage.List(h.Raw, at)
	var items []storage.Item
	add := func(kind storage.Kind, name string) {
		items = append(items, storage.Item{Name: name, Kind: kind})
	}
	depth := strings.Count(dir, "/")
	var empty []string
	for _, item := range below {
		isLogged := item.Kind == storage.KindDir && depth != 1 && h.hasLog(dir, item.Name)
		switch {
		case item.Kind != storage.KindDir || item.Name[0] == '.':
		case dir == "":
			add(storage.KindDir, item.Name)
		case depth == 0 && strings.HasPrefix(item.Name, prefix) && isLogged:
			add(storage.KindFile, item.Name+ending)
			add(storage.KindDir, item.Name)
		case depth == 0 && strings.HasPrefix(item.Name, prefix):
			empty = append(empty, h.above(path.Join(dir, item.Name))...)
		case depth == 1 && item.Name == agentsDir:
			add(storage.KindDir, agents.Subagents)
		case depth == 2 && item.Name != mainAgent && isLogged:
			add(storage.KindFile, item.Name+ending)
		}
	}
	if dir != "" && depth == 0 {
		h.empty.Set(dir, empty)
	}
	return items, err
}

// hasLog reports whether a directory in a shown one has the log of a session or a subagent.
func (h *home) hasLog(dir, name string) bool {
	at, _, err := h.real(path.Join(dir, name+ending))
	if err != nil {
		return false
	}
	st, err := h.Raw.Stat(at)
	return err == nil && st.Kind == storage.KindFile
}

// above returns the directories whose change may give a session its log.
func (h *home) above(session string) []string {
	dir := path.Join(sessionsDir, session)
	return []string{dir, path.Join(dir, agentsDir), path.Join(dir, agentsDir, mainAgent)}
}

// Stat implements storage.Files. A session's first log changes the directory's state too.
func (h *home) Stat(name string) (storage.Stat, error) {
	st, err := h.Renamed.Stat(name)
	if err == nil && name != "" && !strings.Contains(name, "/") {
		st = h.empty.With(h.Raw, name, st)
	}
	return st, err
}

// IsSession implements agents.Format.
func (h *home) IsSession(name string) bool {
	parts := strings.Split(name, "/")
	isSession := len(parts) == 2 && strings.HasPrefix(parts[1], prefix)
	return strings.HasSuffix(name, ending) && (isSession || len(parts) == 4 && parts[2] == agents.Subagents)
}

var _ agents.FactsFormat = (*home)(nil)

// FactsAbout implements agents.FactsFormat. Subagents of several sessions have the same names, so their
// ids have the session's in them. A log elsewhere may lie in the directory of its session.
func (h *home) FactsAbout(name string) agents.About {
	base := strings.TrimSuffix(path.Base(name), ending)
	session := sessionIn(name)
	switch {
	case session == "" || session == base:
		return agents.About{ID: base}
	case path.Base(name) == logName:
		return agents.About{ID: session}
	}
	return agents.About{ID: session + "-" + base, Side: true}
}

// sessionIn returns the id of the session in a path, "" for none.
func sessionIn(name string) string {
	for part := range strings.SplitSeq(strings.TrimSuffix(name, ending), "/") {
		if strings.HasPrefix(part, prefix) {
			return part
		}
	}
	return ""
}

// About implements agents.Format.
func (h *home) About(name string, obj storage.Object, size int64, listed bool) (agents.About, error) {
	about := h.beside(name)
	if !listed || about.Title != "" {
		return about, nil
	}
	var err error
	hasPrompt := func(line []byte) bool {
		return agents.HasAny(line, `"context.append_message"`)
	}
	about.Title, err = h.Converter(about, obj).FindTitle(obj, size, hasPrompt)
	return about, err
}

// Beside returns the title that a session has in another file, for a search.
func (h *home) Beside(name string) string { return h.beside(name).Title }

// CwdBeside returns the working directory of a session, which its log does not tell.
func (h *home) CwdBeside(name string) string { return h.beside(name).Moved }

// beside returns the facts about a session in other files.
func (h *home) beside(name string) agents.About {
	about := h.FactsAbout(name)
	h.addState(&about, name)
	return about
}

// addState adds the facts of a session's state.json. A replaceable title is a prompt or names the origin.
func (h *home) addState(about *agents.About, name string) {
	if h.Raw == nil {
		return
	}
	workspace, _, _ := strings.Cut(name, "/")
	state := h.stateOf(path.Join(workspace, sessionIn(name)))
	about.Moved, _ = state.Member("cwd").Text()
	if about.Side {
		return
	}
	about.Parent, _ = state.Member("forkedFrom").Text()
	if !state.Member("titleKind").Is("replaceable") {
		title, _ := state.Member("title").Text()
		about.Title = agents.FirstLine(title)
	}
}

// stateOf returns the state.json of the session in a directory.
func (h *home) stateOf(session string) agents.Object {
	text := h.states.Text(h.Raw, path.Join(sessionsDir, session, stateName))
	return agents.Read(agents.ObjectIn(text))
}

// Converter implements agents.Format.
func (h *home) Converter(about agents.About, _ storage.Object) *agents.Builder {
	provider := agents.Provider{API: "kimi-code", Name: "kimi", Model: "unknown"}
	return agents.NewBuilder(about, provider, newConverter)
}
