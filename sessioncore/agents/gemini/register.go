package gemini

import (
	"encoding/json"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/rawjson"
	calls "sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

func init() {
	agents.Register(agents.Agent{
		Name:      "gemini",
		Title:     "Gemini CLI",
		Homes:     []string{"$GEMINI_CLI_HOME/.gemini", "~/.gemini"},
		Dirs:      []string{projectsDir},
		Keeps:     true,
		Deletes:   30 * 24 * time.Hour,
		DeletesBy: "general.sessionRetention",

		DeletesResumed: true,
		Detect: func(dir string) bool {
			projects := filepath.Join(dir, projectsDir)
			hasList := agents.HasFile(dir, projectsName)
			return agents.HasDir(projects, "*", chatsDir) || hasList && agents.HasDir(projects)
		},
		Open: func(source agents.Source) (agents.Store, error) {
			h := newHome(source.Files)
			return agents.Store{
				Files:  h,
				Format: h,
				Path:   filepath.Join(source.Path, projectsDir),
				Root:   source.Path,
			}, nil
		},
		NameOf: nameOf,
		Prompts: func(files storage.Files) history.History {
			h := newHome(files)
			return history.Files{
				Files: files,
				Names: func() []string { return h.InEach("logs.json") },
				Parse: h.prompts,
			}
		},
		Tools: calls.Tools{
			"read_many_files": {Arguments: map[string]calls.Argument{"include": {Use: calls.PathUse}}},
		},
		Wrote: wrote,
		Alone: func(storage.Files, rawjson.Value) (agents.Format, error) { return newHome(nil), nil },
		Lone:  lone,
		IsPart: func(file string) bool { // a subagent's comes with the session that called it
			return path.Base(path.Dir(path.Dir(file))) == chatsDir
		},
		Resume: []string{"gemini", "--resume="},
		IsID:   agents.IsUUID,

		AddServer:    []string{"gemini", "mcp", "add", "--scope", "user", "sessionfs", agents.Program, "--"},
		RemoveServer: []string{"gemini", "mcp", "remove", "--scope", "user", "sessionfs"},
	})
}

// nameOf returns the name of a file or directory as the home shows it.
func nameOf(_, below string) string {
	project, file, _ := strings.Cut(below, "/")
	file, isChat := strings.CutPrefix(file+"/", chatsDir+"/") // with a slash, as it may be chatsDir itself
	base, isOld := strings.CutSuffix(file, oldEnding+"/")
	if isChat && isOld {
		file = base + ending
	}
	return path.Join(project, file)
}

// wrote reports whether a record is the header of a session, or a message of one: headers of other
// programs that write such files have no projectHash.
func wrote(v rawjson.Value) bool {
	isHeader := v.Member("sessionId").IsString() && v.Member("projectHash").IsString()
	return isHeader || isMessage(v)
}

// isMessage reports whether a record is a message. The messages of other clients stand in an envelope.
func isMessage(v rawjson.Value) bool {
	for _, key := range []string{"parentId", "parentUuid", "message"} {
		if v.Member(key) != nil {
			return false
		}
	}
	typ := v.Member("type")
	isTurn := typ.Is("user") || typ.Is("gemini")
	return isTurn && v.Member("id").IsString() && v.Member("timestamp").IsString()
}

// lone returns the place of a session from anywhere. A name that no client gives becomes one of its form, with
// the id of the session, or else with the beginning of the name.
func lone(base string, record rawjson.Value) (dir, below string) {
	if sessionOf(base) == "" {
		ext := path.Ext(base)
		id, _ := record.Member("sessionId").Text()
		if !agents.IsUUID(id) {
			id = strings.TrimSuffix(base, ext)
		}
		short := id[:min(len(id), shortID)]
		base = prefix + "2000-01-01T00-00-" + short + ext
	}
	return projectsDir, path.Join("-file", chatsDir, base)
}

// prompts returns the prompts in the log of a project, by the log's name and text. It leaves out those without a time.
func (h *home) prompts(name string, text []byte) (all []history.Prompt) {
	var log []struct {
		SessionID, Message *string
		Timestamp          string
	}
	_ = json.Unmarshal(text, &log)
	project := path.Base(path.Dir(name))
	dir := h.cwd(project)
	var cwd *string
	if dir != "" {
		cwd = &dir
	}
	for _, prompt := range log {
		at, err := time.Parse(time.RFC3339, prompt.Timestamp)
		if err != nil || prompt.Message == nil {
			continue
		}
		all = append(all, history.Prompt{
			Text:    *prompt.Message,
			At:      at.Unix(),
			Session: prompt.SessionID,
			Cwd:     cwd,
		})
	}
	return all
}
