// Package codex shows the rollouts of Codex as sessions (docs/format.md, Codex).
package codex

import (
	"path"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	prefix, ending = "rollout-", ".jsonl"
	uuidSize       = 36
)

// Agent is how Codex keeps sessions: YYYY-MM-DD/rollout-TIME-ID.jsonl, as Days shows them.
type Agent struct {
	Titles func() map[string]string // those that the program keeps beside the rollouts, by id
	Place  func(id string) string   // absolute path of the rollout of a thread, "" if it is not there
}

// IsSession implements foreign.Agent.
func (Agent) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, prefix) && strings.HasSuffix(base, ending)
}

// Converter implements foreign.Agent.
func (Agent) Converter(about foreign.About) foreign.Converter { return newConverter(about) }

// About implements foreign.Agent.
func (a Agent) About(name string, obj storage.Object, size int64) (foreign.About, error) {
	base := strings.TrimSuffix(path.Base(name), ending)
	about := foreign.About{ID: base[max(0, len(base)-uuidSize):]}
	metas := 0
	err := foreign.Ends(obj, size, tells, func(v rawjson.Value) {
		payload := v.Member("payload")
		if v.Member("type").Is("event_msg") && payload.Member("type").Is("thread_name_updated") {
			about.Title, _ = payload.Member("thread_name").Text()
		}
		if !v.Member("type").Is("session_meta") {
			return
		}
		metas++
		parent := payload.Member("source").Member("subagent").Member("thread_spawn").Member("parent_thread_id")
		if metas == 2 {
			parent = payload.Member("id") // a fork begins with the lines of the rollout that it was forked from
		}
		if id, ok := parent.Text(); ok && a.Place != nil && id != about.ID {
			about.Parent = a.Place(id)
		}
	})
	if about.Title == "" && a.Titles != nil {
		about.Title = a.Titles()[about.ID]
	}
	return about, err
}

// tells reports whether a line may say something about the session.
func tells(line []byte) bool {
	line = line[:min(len(line), 200)]
	return strings.Contains(string(line), `"session_meta"`) || strings.Contains(string(line), `"thread_name_updated"`)
}
