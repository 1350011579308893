package copilot

import (
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file makes a fork: a directory with the events of a session up to an entry, and at the end the
// note that the client's own /fork writes (docs/format.md, Forks of other agents). GitHub Copilot CLI
// 1.0.102 was driven.

var _ agents.Forker = (*Home)(nil)

// Fork implements agents.Forker. It sets the form of records in the request.
func (h *Home) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	place := agents.ForkPlace{Dir: stateDir, File: path.Join(request.ID, eventsName)}
	session, subagent := h.Split(request.Name)
	file := h.SessionFile(session)
	if subagent != "" {
		return place, agents.NoFork("a subagent's session cannot be resumed")
	}
	isEvents := path.Base(file) == eventsName || path.Dir(file) == stateDir
	if !isEvents {
		return place, agents.NoFork("a session of a client that kept one document for each cannot be resumed")
	}
	obj, err := h.Raw.Open(file)
	if err != nil {
		return place, err
	}
	defer obj.Close()
	request.RawControls = true
	f := &eventFork{request: request}
	err = agents.CopyRecords(obj, request, out, f.event)
	if err != nil {
		return place, err
	}
	title := h.title(session)
	if title == "" { // the note has to name the original
		title = session
	}
	if request.Title != "" {
		file := path.Join(request.ID, workspaceName)
		workspace := agents.TextContent(f.workspace())
		place.Beside = map[string]agents.Content{file: workspace}
	}
	return place, f.writeNote(out, session, title)
}

// eventFork makes the events of a fork.
type eventFork struct {
	request *agents.ForkRequest
	isBegun bool
	cwd     rawjson.Value // JSON of the working directory
	last    rawjson.Value // JSON of the id of the last event
}

// now returns the JSON of the fork's time.
func (f *eventFork) now() string {
	return `"` + f.request.Time.UTC().Format(rawjson.TimestampLayout) + `"`
}

// event returns an event for the fork: the first one with the fork's id, others as they are.
func (f *eventFork) event(event *agents.Record) (rawjson.Value, error) {
	f.last = append(f.last[:0], event.Member("id")...)
	if f.isBegun {
		return event.Value, nil
	}
	f.isBegun = true
	data := event.Member("data")
	if !event.Member("type").Is("session.start") || !data.IsObject() {
		return nil, agents.NoFork("the session does not begin with its session.start")
	}
	context := data.Member("context")
	f.cwd = append(f.cwd, context.Member("cwd")...)
	changed := rawjson.SetMembers(data, []rawjson.Field{
		{Key: "sessionId", JSON: rawjson.Quote(f.request.ID)},
		{Key: "startTime", JSON: f.now()},
	})
	field := rawjson.Field{Key: "data", JSON: string(changed)}
	return rawjson.SetMembers(event.Value, []rawjson.Field{field}), nil
}

// writeNote writes the event that names the original by its id and title.
func (f *eventFork) writeNote(out io.Writer, session, title string) error {
	name := f.request.Title
	if name == "" {
		name = title
	}
	message := fmt.Sprintf(`Forked from "%s" (%s) as "%s" (%s).`, title, session, name, f.request.ID)
	var event strings.Builder
	fmt.Fprintf(&event, `{"type":"session.info","data":{"infoType":"fork","message":%s}`, rawjson.Quote(message))
	fmt.Fprintf(&event, `,"id":%s`, rawjson.Quote(agents.NewUUID()))
	fmt.Fprintf(&event, `,"timestamp":%s`, f.now())
	fmt.Fprintf(&event, `,"parentId":%s}`+"\n", f.last)
	_, err := io.WriteString(out, event.String())
	return err
}

// workspace returns the file with the fork's name.
func (f *eventFork) workspace() string {
	return workspaceText(f.request.ID, f.cwd, f.request.Title, f.request.Time)
}

// workspaceText returns the file with the name of a session, in YAML. Texts of JSON, as cwd is, are YAML too. A missing cwd
// becomes "".
func workspaceText(id string, cwd rawjson.Value, name string, at time.Time) string {
	if cwd.Missing() {
		cwd = rawjson.Value(`""`)
	}
	timestamp := rawjson.Quote(at.UTC().Format(rawjson.TimestampLayout))
	var text strings.Builder
	fmt.Fprintf(&text, "id: %s\n", id)
	fmt.Fprintf(&text, "cwd: %s\n", cwd)
	text.WriteString("client_name: github/cli\n")
	fmt.Fprintf(&text, "name: %s\n", rawjson.Quote(name))
	text.WriteString("user_named: true\n")
	text.WriteString("summary_count: 0\n")
	fmt.Fprintf(&text, "created_at: %s\n", timestamp)
	fmt.Fprintf(&text, "updated_at: %s\n", timestamp)
	return text.String()
}
