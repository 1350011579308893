package gemini

import (
	"bytes"
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
	texts      agents.Texts
	registries agents.Cached[*registry]
}

// newHome returns the sessions in ~/.gemini. Files may be nil.
func newHome(files storage.Files) *home {
	h := &home{Projects: agents.Projects{
		Dir:      projectsDir,
		Below:    chatsDir,
		Session:  sessionOf,
		Key:      keyOf,
		Begin:    newConverter,
		Provider: agents.Provider{API: "google-gemini-cli", Name: "google-gemini-cli", Model: "gemini"},
		HasTitle: func(line []byte) bool { return agents.HasAny(line, `"summary"`, `"user"`) },
	}}
	h.Raw = files
	h.Copied = h.copied
	h.Cwd = h.cwd
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

// keyOf returns the beginning of a session's id, by the name of its file without the ending or of its subagents' directory.
func keyOf(name string) string {
	if strings.HasPrefix(name, prefix) {
		return name[max(0, len(name)-shortID):]
	}
	return name[:min(len(name), shortID)]
}

// registry has the facts of projects.json, by the names of projects' directories: the names in the
// list, and those that older clients make of the hash of a path.
type registry struct {
	dirs    map[string]string // the working directory
	renamed map[string]string // the name that replaces one made of a hash
}

// registry returns the facts of projects.json, without any if it cannot be read.
func (h *home) registry() *registry {
	known, err := h.registries.Get(h.Raw, projectsName, func(storage.Stat) (*registry, error) {
		text, err := storage.ReadFile(h.Raw, projectsName, maxRegistry)
		return registryOf(rawjson.Value(bytes.TrimSpace(text))), err
	})
	if err != nil {
		return &registry{}
	}
	return known
}

// maxRegistry bounds projects.json, in bytes.
const maxRegistry = 1 << 20

// registryOf reads the text of projects.json. Wrong texts have no facts. Of several directories with one name the first
// one counts.
func registryOf(v rawjson.Value) *registry {
	r := &registry{
		dirs:    map[string]string{},
		renamed: map[string]string{},
	}
	if !rawjson.IsValidObject(v) {
		return r
	}
	add := func(name, dir string) {
		_, isKnown := r.dirs[name]
		if !isKnown {
			r.dirs[name] = dir
		}
	}
	for m := range v.Member("projects").EachMember {
		dir, _ := m.Key.Text()
		name, ok := m.Value.Text()
		if !ok {
			continue
		}
		hash := projectOf(dir)
		add(name, dir)
		add(hash, dir)
		if name != hash {
			r.renamed[hash] = name
		}
	}
	return r
}

// cwd returns the working directory of a project, "" if no file names it.
func (h *home) cwd(project string) string {
	root := h.texts.Text(h.Raw, path.Join(projectsDir, project, ".project_root"))
	if len(root) > 0 {
		return string(root)
	}
	return h.registry().dirs[project]
}

// copied reports whether a client that renamed a project copied a session.
func (h *home) copied(project, session string) bool {
	isHash := len(project) == hex.EncodedLen(sha256.Size)
	if !isHash { // most projects: the registry is not read
		return false
	}
	to, ok := h.registry().renamed[project]
	return ok && h.Has(to, session)
}

// projectOf returns the name of a directory's project in older clients.
func projectOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])
}
