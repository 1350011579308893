package qwen

import (
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

const (
	projectsDir, chatsDir, archiveDir = "projects", "chats", "archive"

	ending = ".jsonl"
	// factsEnding ends the name of the file with facts of a subagent, beside its records.
	factsEnding = ".meta.json"
)

// newHome returns the sessions in ~/.qwen: projects/PROJECT/chats/ID.jsonl, archived ones in
// chats/archive/, and subagents in projects/PROJECT/subagents/ID/. Files may be nil.
func newHome(files storage.Files) *agents.Projects {
	h := &agents.Projects{
		Dir:      projectsDir,
		Below:    chatsDir,
		Archive:  archiveDir,
		Sides:    agents.Subagents,
		Session:  sessionOf,
		Key:      func(name string) string { return name },
		Copied:   func(_, _ string) bool { return false },
		Cwd:      func(string) string { return "" },
		Begin:    newConverter,
		Provider: agents.Provider{API: "qwen-code", Name: "qwen", Model: "unknown"},
		HasTitle: func(line []byte) bool { return agents.HasAny(line, `"user"`, `"at_command"`, `"custom_title"`) },
	}
	var facts agents.Texts
	h.Model = func(file string) string {
		text := facts.Text(files, strings.TrimSuffix(file, ending)+factsEnding)
		model, _ := agents.ObjectIn(text).Member("model").Text()
		return model
	}
	h.Raw = files
	h.Init()
	return h
}

// sessionOf returns the id of the session in a file, "" for none.
func sessionOf(file string) string {
	id, isLog := strings.CutSuffix(file, ending)
	if !isLog || !agents.IsUUID(id) {
		return ""
	}
	return id
}
