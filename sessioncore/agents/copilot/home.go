package copilot

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	stateDir, oldDir  = "session-state", "history-session-state"
	eventsName        = "events.jsonl"
	ending, oldEnding = ".jsonl", ".json"
	maxName           = 200 // bytes of the name of a subagent's session
)

// Home is ~/.copilot, with its sessions as session files lie: session-state/ID.jsonl, in the directory session-state/ID those of
// the session's subagents, and history-session-state/NAME.jsonl.
type Home struct {
	foreign.Renamed
	inside foreign.Inside

	mu      sync.Mutex // guards unbegun
	unbegun []string   // directories of sessions that have no events yet
}

// New returns the sessions in a directory of the client.
func New(files storage.Files) *Home {
	h := &Home{inside: foreign.Inside{May: mayBeOfAgents, Of: ofEvents}}
	h.Renamed = foreign.Renamed{Raw: files, Names: h.names, Real: h.real}
	return h
}

// split splits a name into that of a directory, of a session and of a subagent's session.
func split(name string) (dir, session, agent string) {
	dir, session, _ = strings.Cut(strings.TrimSuffix(name, ending), "/")
	session, agent, _ = strings.Cut(session, "/")
	return dir, session, agent
}

// oldName matches the name of a document of the first clients.
var oldName = regexp.MustCompile(`^session_(.+)_[0-9]+$`)

// idOf returns the id of a session by the name of its file.
func idOf(name string) string {
	dir, session, _ := split(name)
	if id := oldName.FindStringSubmatch(session); dir == oldDir && id != nil {
		return id[1]
	}
	return session
}

// isFile reports whether a name in the client's directory is that of a file.
func (h *Home) isFile(name string) bool {
	st, err := h.Raw.Stat(name)
	return err == nil && st.Kind == storage.KindFile
}

// events returns the file with the events of a session. One in a directory of its own counts before a flat one, which is older.
func (h *Home) events(session string) string {
	if file := path.Join(stateDir, session, eventsName); h.isFile(file) {
		return file
	}
	return path.Join(stateDir, session) + ending
}

// real returns the file of a name. A document of the first clients is shown until its session has events.
func (h *Home) real(name string) (string, storage.Kind, error) {
	dir, session, agent := split(name)
	isFile := strings.HasSuffix(name, ending)
	switch {
	case name == "", name == stateDir, name == oldDir:
		return name, storage.KindDir, nil
	case dir == oldDir && isFile && agent == "" && !h.isFile(h.events(idOf(name))):
		return path.Join(dir, session) + oldEnding, storage.KindFile, nil
	case dir == stateDir && isFile && agent == "":
		return h.events(session), storage.KindFile, nil
	case dir == stateDir && (isFile || agent == ""):
		file := h.events(session)
		agents, err := h.inside.Subagents(h.Raw, file)
		switch {
		case err != nil:
		case !isFile && slices.ContainsFunc(agents, isName):
			return file, storage.KindDir, nil
		case isFile && isName(agent) && slices.Contains(agents, agent):
			return file, storage.KindFile, nil
		}
	}
	return "", 0, fmt.Errorf("%w: %q", fs.ErrNotExist, name)
}

// names returns the names in a directory: of each session its file, and the directory that its subagents may have. Only all of
// the file tells whether it has some.
func (h *Home) names(dir string) (items []storage.Item, err error) {
	add := func(name string, kind storage.Kind) { items = append(items, storage.Item{Name: name, Kind: kind}) }
	if top, session, _ := split(dir); session != "" {
		agents, err := h.inside.Subagents(h.Raw, h.events(session))
		for _, agent := range slices.DeleteFunc(slices.Clone(agents), func(id string) bool { return !isName(id) }) {
			add(agent+ending, storage.KindFile)
		}
		if top != stateDir {
			err = fmt.Errorf("%w: %q", fs.ErrNotExist, dir)
		}
		return items, err
	}
	there, err := storage.List(h.Raw, dir)
	var unbegun []string
	for _, item := range there {
		session, isFlat := strings.CutSuffix(item.Name, ending)
		document, isDocument := strings.CutSuffix(item.Name, oldEnding)
		isDir, isFile := item.Kind == storage.KindDir, item.Kind == storage.KindFile
		switch name := path.Join(dir, item.Name); {
		case item.Name[0] == '.':
		case dir == "" && isDir && (name == stateDir || name == oldDir):
			add(name, item.Kind)
		case dir == oldDir && isDocument && isFile:
			add(document+ending, item.Kind)
		case dir == stateDir && isFlat && isFile && !h.isFile(path.Join(dir, session, eventsName)), dir == stateDir && isDir && h.isFile(path.Join(name, eventsName)):
			add(session+ending, storage.KindFile)
			add(session, storage.KindDir)
		case dir == stateDir && isDir:
			unbegun = append(unbegun, name)
		}
	}
	if dir == stateDir {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.unbegun = unbegun
	}
	return items, err
}

// Stat implements storage.Files. The state of session-state changes too when a session in it gets its first event.
func (h *Home) Stat(name string) (storage.Stat, error) {
	st, err := h.Renamed.Stat(name)
	if name == stateDir {
		h.mu.Lock()
		unbegun := h.unbegun
		h.mu.Unlock()
		for _, dir := range unbegun {
			if now, err := h.Raw.Stat(dir); err == nil {
				st.Token = st.Token.With(now.Token)
			}
		}
	}
	return st, err
}

// isName reports whether an agent's id can be the name of a file.
func isName(id string) bool {
	return len(id) <= maxName && !strings.Contains(id, "/") && storage.CheckName(id) == nil && id[0] != '.'
}

// callers tells whose events are in a file with those of several agents: the agents by the calls that began them.
type callers map[string]string

// of returns the id of the subagent that has an event, "" for the session itself. Old clients name the call alone.
func (c callers) of(event, data foreign.Object) string {
	agent, _ := event.Member("agentId").Text()
	call, _ := data.Member("parentToolCallId").Text()
	started := event.Member("type").Is("subagent.started")
	if started {
		call, _ = data.Member("toolCallId").Text()
	}
	switch {
	case call == "":
	case agent != "":
		c[call] = agent
	case c[call] == "":
		c[call] = call
	}
	if agent == "" && !started {
		agent = c[call]
	}
	return agent
}

// ofEvents returns a function of the events of a file.
func ofEvents() func(rawjson.Value) string {
	c := callers{}
	return func(v rawjson.Value) string {
		event := foreign.Read(v)
		return c.of(event, foreign.Read(event.Member("data")))
	}
}

// mayBeOfAgents reports whether events in lines may be those of subagents.
func mayBeOfAgents(lines []byte) bool {
	return bytes.Contains(lines, []byte(`"agentId"`)) || bytes.Contains(lines, []byte(`"parentToolCallId"`)) ||
		bytes.Contains(lines, []byte(`"subagent.started"`))
}
