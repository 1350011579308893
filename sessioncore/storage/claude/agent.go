// Package claude shows the sessions of Claude Code as sessions (docs/format.md, Claude Code).
package claude

import (
	"bytes"
	"path"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const ending = ".jsonl"

// Agent is how Claude Code keeps sessions: PROJECT/ID.jsonl, and below PROJECT/ID/subagents those of subagents.
type Agent struct{ Root string } // the absolute path of the projects

// IsSession implements foreign.Agent.
func (Agent) IsSession(name string) bool {
	return strings.HasSuffix(name, ending) && strings.Contains(name, "/")
}

// Converter implements foreign.Agent.
func (Agent) Converter(about foreign.About) foreign.Converter { return newConverter(about) }

// About implements foreign.Agent. The title is the one that the person gave, else the one that the client made, else a
// summary.
func (a Agent) About(name string, obj storage.Object, size int64) (foreign.About, error) {
	about := foreign.About{ID: strings.TrimSuffix(path.Base(name), ending), Side: strings.HasPrefix(path.Base(name), "agent-")}
	var custom, made, summary string
	err := foreign.Ends(obj, size, tells, func(v rawjson.Value) {
		switch typ := v.Member("type"); {
		case typ.Is("custom-title"):
			custom, _ = v.Member("customTitle").Text()
		case typ.Is("ai-title"):
			made, _ = v.Member("aiTitle").Text()
		case typ.Is("summary"):
			summary, _ = v.Member("summary").Text()
		}
		if from, ok := v.Member("forkedFrom").Member("sessionId").Text(); ok && about.Parent == "" && from != about.ID {
			about.Parent = path.Join(a.Root, path.Dir(name), from+ending)
		}
	})
	for _, title := range [...]string{custom, made, summary} {
		if about.Title == "" {
			about.Title = title
		}
	}
	return about, err
}

// tells reports whether a line may say something about the session.
func tells(line []byte) bool {
	line = line[:min(len(line), 4<<10)]
	for _, word := range [...]string{`-title"`, `"summary"`, `"forkedFrom"`} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return false
}
