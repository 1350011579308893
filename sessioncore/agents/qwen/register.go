package qwen

import (
	"path"
	"path/filepath"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

func init() {
	agents.Register(agents.Agent{
		Name:  "qwen",
		Title: "Qwen Code",
		Homes: []string{"$QWEN_HOME", "~/.qwen"},
		Dirs:  []string{projectsDir},
		Detect: func(dir string) bool {
			return agents.HasDir(filepath.Join(dir, projectsDir), "*", chatsDir)
		},
		Open: func(source agents.Source) (agents.Store, error) {
			h := newHome(source.Files)
			return agents.Store{
				Files:  h,
				Format: Format{h},
				Path:   filepath.Join(source.Path, projectsDir),
			}, nil
		},
		NameOf:      nameOf,
		Wrote:       wrote,
		Alone:       func(storage.Files, rawjson.Value) (agents.Format, error) { return Format{newHome(nil)}, nil },
		IsPart:      isPart,
		Lone:        lone,
		NamesAreIDs: true,
		Resume:      []string{"qwen", "--resume"},
		IsID:        agents.IsUUID,

		AddServer:    []string{"qwen", "mcp", "add", "--scope", "user", "sessionfs", agents.Program, "--"},
		RemoveServer: []string{"qwen", "mcp", "remove", "--scope", "user", "sessionfs"},
	})
}

// nameOf returns the name of a file or directory as the home shows it. Of another agent's directory
// projects it is the name of no session.
func nameOf(_, below string) string {
	project, rest, _ := strings.Cut(below, "/")
	side, isSide := strings.CutPrefix(rest, agents.Subagents+"/")
	if isSide {
		session, file, _ := strings.Cut(side, "/")
		return path.Join(project, session, agents.Subagents, file)
	}
	chat, isChat := strings.CutPrefix(rest+"/", chatsDir+"/") // with a slash, as it may be chatsDir itself
	if !isChat {
		return path.Join(project, strings.TrimSuffix(rest, ending))
	}
	return path.Join(project, strings.TrimPrefix(chat, archiveDir+"/"))
}

// lone returns the place of a session from anywhere. Its name gets the id, which each record has.
func lone(base string, record rawjson.Value) (dir, below string) {
	id, _ := record.Member("sessionId").Text()
	if sessionOf(base) == "" && agents.IsUUID(id) {
		base = id + ending
	}
	return projectsDir, path.Join("-file", chatsDir, base)
}

// isPart reports whether a file is a subagent's, which comes with the session that called it.
func isPart(file string) bool {
	above := path.Base(path.Dir(path.Dir(file)))
	return above == agents.Subagents && strings.HasPrefix(path.Base(file), agentPrefix)
}

// wrote reports whether a record is of Qwen Code: the envelope of a record, with parts of Google's form,
// a payload or the name of its writer in it.
func wrote(v rawjson.Value) bool {
	for _, key := range []string{"uuid", "sessionId", "type"} {
		if !v.Member(key).IsString() {
			return false
		}
	}
	message := v.Member("message")
	hasParts := message.Member("parts").IsArray()
	hasPayload := v.Member("systemPayload").IsObject()
	hasWriter := v.Member("provenance").IsString()
	return hasParts || hasPayload || hasWriter
}
