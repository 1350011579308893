package copilot

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

func init() {
	agents.Register(agents.Agent{
		Name:  "copilot",
		Title: "GitHub Copilot CLI",
		Homes: []string{"$COPILOT_HOME", "$XDG_STATE_HOME/.copilot", "~/.copilot"},
		Dirs:  []string{stateDir, oldDir},
		Detect: func(dir string) bool {
			return agents.HasDir(dir, stateDir) || agents.HasDir(dir, oldDir)
		},
		Open: func(source agents.Source) (agents.Store, error) {
			home := New(source.Files)
			return agents.Store{
				Files:  home,
				Format: home,
				Path:   source.Path,
				Root:   source.Path,
			}, nil
		},
		NameOf: nameOf,
		Prompts: func(files storage.Files) history.History {
			return history.Files{
				Files: files,
				Names: func() []string { return []string{promptsName} },
				Parse: prompts,
			}
		},
		Wrote:     wrote,
		Alone:     func(storage.Files, rawjson.Value) (agents.Format, error) { return New(nil), nil },
		Lone:      lone,
		IsPart:    isPart,
		ByRequest: []string{provider.Name, "copilot"},
		Resume:    []string{"copilot", "--resume="},
		IsID:      agents.IsUUID,

		AddServer:    []string{"copilot", "mcp", "add", "sessionfs", "--", agents.Program},
		RemoveServer: []string{"copilot", "mcp", "remove", "sessionfs"},
	})
}

// wrote reports whether a record is an event, or a document of the first clients. The id of an event
// is behind its data: the first event of a file may be cut within them.
func wrote(v rawjson.Value) bool {
	typ, _ := v.Member("type").Text()
	data := v.Member("data")
	switch {
	case v.Member("chatMessages").IsArray():
		return true
	case !strings.Contains(typ, ".") || !data.IsObject():
		return false
	case typ == "session.start" && data.Member("sessionId").IsString():
		return true
	case typ == "session.import_legacy" && data.Member("legacySession").IsObject():
		return true
	}
	return v.Member("id").IsString()
}

// lone returns the place of a session's events, or of an old document, from anywhere, by the session's id or else by the
// name of the file.
func lone(base string, record rawjson.Value) (dir, below string) {
	name := strings.TrimSuffix(base, path.Ext(base))
	if record.Member("chatMessages").IsArray() {
		return oldDir, name + oldEnding
	}
	data := record.Member("data")
	id, _ := data.Member("sessionId").Text()
	if !agents.IsUUID(id) {
		id = name
	}
	return stateDir, path.Join(id, eventsName)
}

// isPart reports whether a file lies beside the events of a session, in its directory.
func isPart(file string) bool {
	_, below, isState := strings.Cut("/"+file, "/"+stateDir+"/") // a whole element of the path, also the first one
	isInSession := isState && strings.Contains(below, "/")
	return isInSession && path.Base(file) != eventsName
}

// promptsName is the file with the prompts: the newest first, without times.
const promptsName = "command-history-state.json"

// prompts returns the prompts in that file, the oldest first, none if it is no JSON.
func prompts(_ string, text []byte) (all []history.Prompt) {
	var typed struct{ CommandHistory []string } // the names of JSON match in any case
	_ = json.Unmarshal(text, &typed)
	for _, text := range slices.Backward(typed.CommandHistory) {
		all = append(all, history.Prompt{Text: text, Untimed: true})
	}
	return all
}

// nameOf returns the name of a file or directory as Home shows it.
func nameOf(dir, below string) string {
	session, rest, isBelow := strings.Cut(below, "/")
	switch {
	case dir == oldDir && strings.HasSuffix(below, oldEnding):
		return path.Join(dir, strings.TrimSuffix(below, oldEnding)+ending)
	case dir == stateDir && isBelow && rest == eventsName:
		return path.Join(dir, session+ending)
	}
	return path.Join(dir, below)
}
