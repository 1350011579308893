package gemini

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	projectsDir, chatsDir, projectsName = "tmp", "chats", "projects.json"

	prefix, ending = "session-", ".jsonl"
	oldEnding      = ".json" // of clients that rewrite all of a session at each change
	shortID        = 8       // characters of a session's id end the name of its file
)

// home is ~/.gemini: tmp/PROJECT/chats/session-X.jsonl, or session-X.json of old clients, and the
// sessions of subagents in tmp/PROJECT/chats/ID/. A resume leaves a second file with the beginning
// of the id that has no conversation.
type home struct {
	agents.Projects
	texts agents.Texts
}

func newHome(files storage.Files) *home {
	h := &home{Projects: agents.Projects{
		Dir: projectsDir, Below: chatsDir, Session: sessionOf, Key: keyOf, Begin: newConverter,
		Provider: agents.Provider{API: "google-gemini-cli", Name: "google-gemini-cli", Model: "gemini"},
		HasTitle: func(line []byte) bool { return agents.HasAny(line, `"summary"`, `"user"`) },
	}}
	h.Raw, h.Copied, h.Cwd = files, h.copied, h.cwd
	h.Init()
	return h
}

// sessionOf returns the session in a file, "" for none.
func sessionOf(file string) string {
	base := strings.TrimSuffix(strings.TrimSuffix(file, ending), oldEnding)
	if base == file || !strings.HasPrefix(base, prefix) {
		return ""
	}
	return base
}

// keyOf returns the beginning of a session's id, by its name or that of the directory of its
// subagents.
func keyOf(name string) string {
	if strings.HasPrefix(name, prefix) {
		return name[max(0, len(name)-shortID):]
	}
	return name[:min(len(name), shortID)]
}

// find returns the directory of the first project for which f returns true, "" for none.
func (h *home) find(f func(dir, project string) bool) string {
	v := rawjson.Value(h.texts.Text(h.Raw, projectsName))
	if !rawjson.IsValidObject(v) {
		return ""
	}
	for m := range v.Member("projects").EachMember {
		dir, _ := m.Key.Text()
		if name, ok := m.Value.Text(); ok && f(dir, name) {
			return dir
		}
	}
	return ""
}

// cwd returns the working directory of a project, "" if no file names it.
func (h *home) cwd(project string) string {
	if root := h.texts.Text(h.Raw, path.Join(projectsDir, project, ".project_root")); len(root) > 0 {
		return string(root)
	}
	return h.find(func(dir, name string) bool { return name == project || projectOf(dir) == project })
}

// copied reports whether a client that renamed a project copied a session.
func (h *home) copied(project, session string) bool {
	return len(project) == hex.EncodedLen(sha256.Size) && h.find(func(dir, to string) bool {
		return to != project && projectOf(dir) == project && h.Has(to, session)
	}) != ""
}

// projectOf returns the name of a directory's project in older clients.
func projectOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])
}
