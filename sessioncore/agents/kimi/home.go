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

// newHome returns the sessions in ~/.kimi-code. Files may be nil.
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

// real returns the file or directory of a shown name:
//
//	""                                sessions
//	WORKSPACE                         sessions/WORKSPACE
//	WORKSPACE/SESSION.jsonl           sessions/WORKSPACE/SESSION/agents/main/wire.jsonl
//	WORKSPACE/SESSION                 sessions/WORKSPACE/SESSION
//	WORKSPACE/SESSION/subagents       sessions/WORKSPACE/SESSION/agents
//	WORKSPACE/SESSION/subagents/AGENT.jsonl
//	                                  sessions/WORKSPACE/SESSION/agents/AGENT/wire.jsonl
func (h *home) real(name string) (string, storage.Kind, error) {
	workspace, inWorkspace, hasMore := strings.Cut(name, "/")
	if !hasMore {
		return path.Join(sessionsDir, workspace), storage.KindDir, nil
	}
	entry, below, isDeep := strings.Cut(inWorkspace, "/")
	if !strings.HasPrefix(entry, prefix) {
		return "", 0, agents.Missing(name)
	}
	session := path.Join(workspace, entry)
	base, isFile := strings.CutSuffix(session, ending)
	switch {
	case !isDeep && isFile:
		return logOf(base, mainAgent), storage.KindFile, nil
	case !isDeep:
		return path.Join(sessionsDir, session), storage.KindDir, nil
	case below == agents.Subagents:
		return path.Join(sessionsDir, session, agentsDir), storage.KindDir, nil
	}
	agent, isAgent := subagentOf(below)
	if !isAgent {
		return "", 0, agents.Missing(name)
	}
	return logOf(session, agent), storage.KindFile, nil
}

// subagentOf returns the subagent with the session at a path below a shown session's directory.
func subagentOf(below string) (agent string, ok bool) {
	file, isInSubagents := strings.CutPrefix(below, agents.Subagents+"/")
	agent, isSession := strings.CutSuffix(file, ending)
	if !isInSubagents || !isSession {
		return "", false
	}
	isAgent := agent != mainAgent && !strings.Contains(agent, "/") // the main agent's session is the session itself
	return agent, isAgent
}

// names returns the names in a shown directory. For a workspace it notes the directories that may still become sessions.
func (h *home) names(dir string) ([]storage.Item, error) {
	at, _, err := h.real(dir)
	if err != nil {
		return nil, err
	}
	below, err := storage.List(h.Raw, at)
	isWorkspace := dir != "" && !strings.Contains(dir, "/")
	var items []storage.Item
	var empty []string
	for _, item := range below {
		isHidden := item.Name[0] == '.'
		if item.Kind != storage.KindDir || isHidden {
			continue
		}
		shown := h.shownAs(dir, item.Name)
		items = append(items, shown...)
		isSession := isWorkspace && strings.HasPrefix(item.Name, prefix)
		if isSession && len(shown) == 0 {
			session := path.Join(dir, item.Name)
			empty = append(empty, h.above(session)...)
		}
	}
	if isWorkspace {
		h.empty.Set(dir, empty)
	}
	return items, err
}

// shownAs returns the names of a directory of the client in a shown directory: none where it is not shown, two
// for a session, which is a file and a directory of subagents.
func (h *home) shownAs(dir, name string) []storage.Item {
	asDir := storage.Item{Name: name, Kind: storage.KindDir}
	asFile := storage.Item{Name: name + ending, Kind: storage.KindFile}
	if dir == "" {
		return []storage.Item{asDir}
	}
	switch strings.Count(dir, "/") {
	case 0: // a workspace
		if strings.HasPrefix(name, prefix) && h.hasLog(dir, name) {
			return []storage.Item{asFile, asDir}
		}
	case 1: // a session
		if name == agentsDir {
			return []storage.Item{{Name: agents.Subagents, Kind: storage.KindDir}}
		}
	case 2: // the subagents of one
		if name != mainAgent && h.hasLog(dir, name) {
			return []storage.Item{asFile}
		}
	}
	return nil
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

// above returns the directories that change when a session gets its log.
func (h *home) above(session string) []string {
	dir := path.Join(sessionsDir, session)
	return []string{dir, path.Join(dir, agentsDir), path.Join(dir, agentsDir, mainAgent)}
}

// Stat implements storage.Files. A session's first log changes the directory's state too.
func (h *home) Stat(name string) (storage.Stat, error) {
	st, err := h.Renamed.Stat(name)
	isWorkspace := name != "" && !strings.Contains(name, "/")
	if err == nil && isWorkspace {
		st = h.empty.With(h.Raw, name, st)
	}
	return st, err
}

// IsSession implements agents.Format.
func (h *home) IsSession(name string) bool {
	if !strings.HasSuffix(name, ending) {
		return false
	}
	parts := strings.Split(name, "/")
	isSession := len(parts) == 2 && strings.HasPrefix(parts[1], prefix)
	isSubagent := len(parts) == 4 && parts[2] == agents.Subagents
	return isSession || isSubagent
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
	builder := h.Converter(about, obj)
	about.Title, err = builder.FindTitle(obj, size, hasPrompt)
	return about, err
}

// Beside returns the title that a session has in another file, for a search.
func (h *home) Beside(name string) string { return h.beside(name).Title }

// CwdBeside returns the working directory of a session, which its log does not tell.
func (h *home) CwdBeside(name string) string { return h.beside(name).Moved }

// beside returns the facts about a session that its log does not have.
func (h *home) beside(name string) agents.About {
	about := h.FactsAbout(name)
	h.addState(&about, name)
	return about
}

// addState adds the facts of a session's state.json: the directory, and for no subagent the original and the title. A
// replaceable title is a prompt or names the origin, and does not count.
func (h *home) addState(about *agents.About, name string) {
	if h.Raw == nil {
		return
	}
	workspace, _, _ := strings.Cut(name, "/")
	session := path.Join(workspace, sessionIn(name))
	state := h.stateOf(session)
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

// stateOf returns the state.json of the session in a directory, WORKSPACE/SESSION, none if it cannot be read.
func (h *home) stateOf(session string) agents.Object {
	text := h.states.Text(h.Raw, path.Join(sessionsDir, session, stateName))
	return agents.Read(agents.ObjectIn(text))
}

// Converter implements agents.Format.
func (h *home) Converter(about agents.About, _ storage.Object) *agents.Builder {
	provider := agents.Provider{API: "kimi-code", Name: "kimi", Model: "unknown"}
	return agents.NewBuilder(about, provider, newConverter)
}
