package kimi

import (
	"path"
	"path/filepath"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

func init() {
	agents.RegisterUnread("Kimi CLI", "~/.kimi") // which came before
	agents.Register(agents.Agent{
		Name:  "kimi",
		Title: "Kimi Code",
		Homes: []string{"$KIMI_CODE_HOME", "~/.kimi-code"},
		Dirs:  []string{sessionsDir},
		Detect: func(dir string) bool {
			return agents.HasDir(filepath.Join(dir, sessionsDir), "wd_*", prefix+"*")
		},
		Open: func(source agents.Source) (agents.Store, error) {
			h := newHome(source.Files)
			return agents.Store{Files: h, Format: h, Path: filepath.Join(source.Path, sessionsDir)}, nil
		},
		NameOf:      nameOf,
		Wrote:       wrote,
		Alone:       func(storage.Files, rawjson.Value) (agents.Format, error) { return newHome(nil), nil },
		IsPart:      isPart,
		Lone:        lone,
		NamesAreIDs: true,
		Resume:      []string{"kimi", "--session="},
		IsID: func(id string) bool {
			uuid, isSession := strings.CutPrefix(id, prefix)
			return isSession && agents.IsUUID(uuid)
		},
	})
}

// nameOf returns the name of a file or directory as the home shows it.
func nameOf(_, below string) string {
	parts := strings.Split(below, "/")
	isLog := len(parts) == 5 && parts[2] == agentsDir && parts[4] == logName
	if !isLog {
		return below
	}
	session := path.Join(parts[0], parts[1])
	if parts[3] == mainAgent {
		return session + ending
	}
	return path.Join(session, agents.Subagents, parts[3]+ending)
}

// lone returns the place of a log from anywhere, which has the name of all logs, or its session's. The first
// record tells when the session began, and no id.
func lone(base string, record rawjson.Value) (dir, below string) {
	name := strings.TrimSuffix(base, ending)
	id := strings.TrimPrefix(name, prefix)
	if base == logName {
		id = string(record.Member("created_at"))
	}
	return sessionsDir, path.Join("wd_file", prefix+id, agentsDir, mainAgent, logName)
}

// isPart reports whether a file is a subagent's log, which comes with the session that called it.
func isPart(file string) bool {
	agentDir := path.Dir(file)
	isLog := path.Base(file) == logName && path.Base(path.Dir(agentDir)) == agentsDir
	return isLog && path.Base(agentDir) != mainAgent
}

// wrote reports whether a record is of Kimi Code: the first one of a log, or one of an agent.
func wrote(v rawjson.Value) bool {
	typ, _ := v.Member("type").Text()
	isFirst := typ == "metadata" && v.Member("protocol_version").IsString()
	isOfAgent := v.Member("agentId").IsString() && v.Member("time").IsNumber()
	return isFirst || isOfAgent && strings.Contains(typ, ".")
}
