package kimi

import (
	"bytes"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file makes a fork: a directory with the log of a session up to an entry, and the note that the
// client's own fork writes behind it. A log tells undone prompts and compactions by the numbers of its
// lines, which are the same in the fork (docs/format.md, Forks of other agents). Kimi Code 2.1.0 was driven.

var _ agents.Forker = (*home)(nil)

// blobsDir has the images of an agent, each under the hash of its base64.
const blobsDir = "blobs"

// Fork implements agents.Forker.
func (h *home) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	workspace, base := path.Split(request.Name)
	id := prefix + request.ID
	file := path.Join(workspace, id, agentsDir, mainAgent, logName)
	place := agents.ForkPlace{Dir: sessionsDir, File: file}
	if h.FactsAbout(request.Name).Side {
		return place, agents.NoFork("a subagent's session cannot be resumed")
	}
	obj, err := h.Open(request.Name)
	if err != nil {
		return place, err
	}
	defer obj.Close()
	note := rawjson.AppendLine(nil, forkNote{
		Type:  "forked",
		Agent: mainAgent,
		Time:  request.Time.UnixMilli(),
	})
	f := &logFork{note: bytes.TrimSpace(note), blobs: map[string]bool{}}
	err = agents.CopyRecords(obj, request, out, f.record)
	if err != nil {
		return place, err
	}
	_, err = out.Write(note)
	if err != nil {
		return place, err
	}
	origin := path.Join(workspace, strings.TrimSuffix(base, ending))
	place.Beside = h.images(origin, path.Dir(file), f.blobs)
	state := path.Join(workspace, id, stateName)
	place.Beside[state] = f.state(h.stateOf(origin), id, request)
	return place, nil
}

// images returns the images with the hashes in blobs, of the session in directory origin, for the directory of its fork's
// log, by their paths. Where one is missing the client sends a note in its place, in the original too.
func (h *home) images(origin, forkDir string, blobs map[string]bool) map[string]agents.Content {
	originDir := path.Dir(logOf(origin, mainAgent))
	images := map[string]agents.Content{}
	for blob := range blobs {
		from := path.Join(originDir, blobsDir, blob)
		_, err := h.Raw.Stat(from)
		if err == nil {
			to := path.Join(forkDir, blobsDir, blob)
			images[to] = agents.CopyOf(h.Raw, from)
		}
	}
	return images
}

// forkNote is the last record of a fork. The client then drops the goal of the original.
type forkNote struct {
	Type  string `json:"type"`
	Agent string `json:"agentId"`
	Time  int64  `json:"time"`
}

// logFork copies the records of a fork.
type logFork struct {
	note   rawjson.Value
	blobs  map[string]bool // the images that the records name
	prompt string          // the last one
}

// blobURL begins the URL of an image that lies beside the log, and blobRef matches it.
const blobURL = "blobref:"

var blobRef = regexp.MustCompile(`"` + blobURL + `[^";\\]*;([0-9a-f]{64})"`)

// rights are the types of records of a person giving rights to the original. A fork begins with the rights of
// a new session, as the client's settings are.
var rights = []string{"permission.set_mode", "permission.rules.add", "permission.record_approval_result"}

// record returns a record as it is, or the note in the place of one that gave a right.
func (f *logFork) record(record *agents.Record) (rawjson.Value, error) {
	if bytes.Contains(record.Value, []byte(blobURL)) {
		for _, found := range blobRef.FindAllSubmatch(record.Value, -1) {
			f.blobs[string(found[1])] = true
		}
	}
	typ, _ := record.Member("type").Text()
	if slices.Contains(rights, typ) {
		return f.note, nil
	}
	isTyped := record.Member("origin").Member("kind").Is("user")
	if typ == "turn.prompt" && isTyped {
		_, f.prompt = contentOf(record.Member("input"))
	}
	return record.Value, nil
}

// forkState is the state.json of a fork.
type forkState struct {
	ID         string               `json:"id"`
	Version    int                  `json:"version"`
	CWD        string               `json:"cwd,omitempty"`
	Created    int64                `json:"createdAt"`
	Updated    int64                `json:"updatedAt"`
	IsArchived bool                 `json:"archived"`
	Title      string               `json:"title,omitempty"`
	TitleKind  string               `json:"titleKind,omitempty"`
	IsNamed    bool                 `json:"isCustomTitle"`
	LastPrompt string               `json:"lastPrompt,omitempty"`
	ForkedFrom string               `json:"forkedFrom"`
	Agents     map[string]forkAgent `json:"agents"`
}

// forkAgent is an agent of a session.
type forkAgent struct {
	Type   string `json:"type"`
	Parent string `json:"parentAgentId,omitempty"`
}

// state returns the state.json of the fork with an id, by the original's. The subagents stay with the original. They
// are named, so that the client gives their ids to no others. The title is the request's, else the original's with
// the client's own mark of a fork.
func (f *logFork) state(original agents.Object, id string, request *agents.ForkRequest) agents.Content {
	now := request.Time.UnixMilli()
	state := forkState{
		ID:         id,
		Version:    2,
		Created:    now,
		Updated:    now,
		LastPrompt: f.prompt,
		ForkedFrom: sessionIn(request.Name),
		Agents:     map[string]forkAgent{mainAgent: {Type: mainAgent}},
	}
	state.CWD, _ = original.Member("cwd").Text()
	title, _ := original.Member("title").Text()
	switch {
	case request.Title != "":
		state.Title = request.Title
		state.TitleKind = "custom"
		state.IsNamed = true
	case title != "":
		state.Title = "Fork: " + title
		state.TitleKind, _ = original.Member("titleKind").Text()
		state.IsNamed = state.TitleKind == "custom"
	}
	for member := range original.Member("agents").EachMember {
		agent, _ := member.Key.Text()
		if agents.IsSubagent(agent) && agent != mainAgent {
			state.Agents[agent] = forkAgent{Type: "sub", Parent: mainAgent}
		}
	}
	return agents.TextContent(string(rawjson.AppendLine(nil, state)))
}
