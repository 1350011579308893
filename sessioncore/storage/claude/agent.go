package claude

import (
	"bytes"
	"path"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	ending      = ".jsonl"
	subagents   = "subagents"
	agentPrefix = "agent-"
	// chainPrefix begins the names of subagents' sessions that are a part of another session's file. The uuid of their first
	// record follows.
	chainPrefix = "sidechain-"
)

// Agent is how Claude Code keeps sessions: PROJECT/ID.jsonl, and below PROJECT/ID/subagents those of subagents.
type Agent struct {
	// Projects are those among which a fork's original is looked for; nil looks for none.
	Projects *Projects
}

// IsSession implements foreign.Agent.
func (Agent) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ending) && (strings.Count(name, "/") == 1 || isSubagent(base))
}

// isSubagent reports whether a file is the session of a subagent, by its name.
func isSubagent(base string) bool {
	return strings.HasPrefix(base, agentPrefix) || strings.HasPrefix(base, chainPrefix)
}

// Converter implements foreign.Agent.
func (Agent) Converter(about foreign.About, _ storage.Object) foreign.Converter {
	return newConverter(about, newLearned())
}

// About implements foreign.Agent. The title is the one that the person gave, else the one that the client made, else a
// summary. A fork has copies of records that name the session they are from: in a member of their own, or in one of two
// spellings of the same; or they are copied as they are.
func (a Agent) About(name string, obj storage.Object, size int64) (foreign.About, error) {
	about := foreign.About{ID: strings.TrimSuffix(path.Base(name), ending)}
	if about.Side = isSubagent(about.ID); about.Side {
		about.Chain, _ = strings.CutPrefix(about.ID, chainPrefix)
		if about.Chain == about.ID {
			about.Chain = ""
		}
		return about, nil
	}
	var custom, made, summary, first string
	tells := func(line []byte) bool {
		return tells(line) || first == "" && bytes.Contains(line, []byte(`"uuid"`))
	}
	err := foreign.Ends(obj, size, tells, func(v rawjson.Value) {
		r := foreign.Read(v)
		if first == "" {
			first, _ = r.Member("uuid").Text()
		}
		switch typ := r.Member("type"); {
		case typ.Is("custom-title"):
			custom, _ = r.Member("customTitle").Text()
		case typ.Is("ai-title"):
			made, _ = r.Member("aiTitle").Text()
		case typ.Is("summary"):
			summary, _ = r.Member("summary").Text()
		}
		for _, from := range []rawjson.Value{r.Member("forkedFrom").Member("sessionId"), r.Member("session_id"), r.Member("sessionId")} {
			if id, _ := from.Text(); id != "" && id != about.ID && about.Parent == "" {
				about.Parent = id
			}
		}
	})
	for _, title := range [...]string{custom, made, summary} {
		if about.Title == "" {
			about.Title = title
		}
	}
	if about.Parent == "" && first != "" && a.Projects != nil {
		about.Parent = a.Projects.parentOf(name, first)
	}
	return about, err
}

// tells reports whether a line may say something about the session.
func tells(line []byte) bool {
	for _, word := range [...]string{`-title"`, `"summary"`, `"forkedFrom"`, `"session_id"`} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return false
}
