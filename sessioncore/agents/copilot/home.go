package copilot

import (
	"path"
	"regexp"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

const (
	stateDir, oldDir          = "session-state", "history-session-state"
	eventsName, workspaceName = "events.jsonl", "workspace.yaml"
	ending, oldEnding         = ".jsonl", ".json"
	// maxWorkspace is how much is read of workspace.yaml. The name and the summary are near its
	// beginning.
	maxWorkspace = 4 << 10
)

// Home is ~/.copilot, with its sessions as session files lie.
type Home struct{ agents.Folders }

// New returns the sessions in a directory of the client; nil is for a file that lies elsewhere.
func New(files storage.Files) *Home {
	h := &Home{agents.Folders{
		Dir:  stateDir,
		File: eventsName,
		Old:  oldDir,
		ID:   oldID,
	}}
	h.Raw = files
	h.Inside.May = mayBeOfAgents
	h.Inside.InnerKey = innerKey
	h.Inside.RawControls = true
	h.Inside.Share = newSharing
	h.Init()
	return h
}

// oldName matches the name of a document of the first clients.
var oldName = regexp.MustCompile(`^session_(.+)_[0-9]+$`)

// oldID returns the id of the session in a document, by its name.
func oldID(name string) string {
	id := oldName.FindStringSubmatch(name)
	if id != nil {
		return id[1]
	}
	return name
}

// callers has the subagents with events in a session's file, by the calls that began them.
type callers map[string]string

// of returns the id of the subagent that has an event, "" for the session itself. Old clients name
// the call alone, which then is the id. It notes the subagent of the call.
func (c callers) of(event, data agents.Object) string {
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
	case c[call] == "": // an old client
		c[call] = call
	}
	if agent == "" && !started { // the begin of a subagent is an event of its caller
		agent = c[call]
	}
	return agent
}

// mayBeOfAgents reports whether lines may have events of subagents.
func mayBeOfAgents(lines []byte) bool {
	return agents.HasAny(lines, `"agentId"`, `"parentToolCallId"`, `"subagent.started"`)
}

// title returns the title that workspace.yaml gives a session, "" for none.
func (h *Home) title(id string) string {
	if h.Raw == nil {
		return ""
	}
	file := path.Join(stateDir, id, workspaceName)
	content, _ := storage.ReadFile(h.Raw, file, maxWorkspace)
	text := string(content)
	title := agents.YAMLText(text, "name")
	if title == "" {
		title = agents.YAMLText(text, "summary")
	}
	return agents.FirstLine(title)
}
