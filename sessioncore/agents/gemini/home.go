package gemini

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	projectsDir, chatsDir, projectsName = "tmp", "chats", "projects.json"

	prefix, ending = "session-", ".jsonl"
	oldEnding      = ".json" // of clients that rewrite all of a session at each change
	shortID        = 8       // characters of a session's id end the name of its file
	// maxSmall is how much is read of a file that names projects, and of a session that may have no
	// conversation.
	maxSmall = 64 << 10
)

// home shows ~/.gemini: tmp/PROJECT/chats/session-X.jsonl, or session-X.json of old clients, and the
// sessions of subagents in tmp/PROJECT/chats/ID/. Raw is nil for a file that lies elsewhere.
type home struct {
	foreign.Projects
	stubs foreign.Cached[bool]
	small foreign.Cached[[]byte]
}

func newHome(files storage.Files) *home {
	h := &home{Projects: foreign.Projects{Dir: projectsDir, Below: chatsDir, Session: sessionOf, Key: keyOf}}
	h.Raw, h.Hidden = files, h.hidden
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

// keyOf returns the beginning of a session's id, by its name or that of the directory of its subagents.
func keyOf(name string) string {
	if strings.HasPrefix(name, prefix) {
		return name[max(0, len(name)-shortID):]
	}
	return name[:min(len(name), shortID)]
}

// hidden reports whether a session is another one's copy: a resume leaves a second file of the same id that
// has no conversation, and a client that renames a project a copy in the old directory.
func (h *home) hidden(project, session string, twins []string) bool {
	isTalk := func(file string) bool { return !h.isStub(file) }
	if len(twins) > 1 && h.isStub(twins[0]) && slices.ContainsFunc(twins, isTalk) {
		return true
	}
	return len(project) == hex.EncodedLen(sha256.Size) && h.find(func(dir, to string) bool {
		return to != project && projectOf(dir) == project && h.Has(to, session)
	}) != ""
}

// isStub reports whether a session has no conversation.
func (h *home) isStub(file string) bool {
	is, _ := h.stubs.Get(h.Raw, file, func(st storage.Stat) (bool, error) {
		text, err := foreign.ReadFile(h.Raw, file, maxSmall)
		hasTalk := st.Size >= maxSmall || strings.HasSuffix(file, oldEnding) || newBuilder(foreign.About{}).HasTalk(text)
		return err == nil && !hasTalk, err
	})
	return is
}

// text returns the text of a small file, without the blanks around it.
func (h *home) text(name string) []byte {
	text, _ := h.small.Get(h.Raw, name, func(storage.Stat) ([]byte, error) {
		text, err := foreign.ReadFile(h.Raw, name, maxSmall)
		return bytes.TrimSpace(text), err
	})
	return text
}

// find returns the directory of the first project for which f returns true, "" for none.
func (h *home) find(f func(dir, project string) bool) (found string) {
	v := rawjson.Value(h.text(projectsName))
	if len(v) == 0 || !rawjson.IsValidObject(v) {
		return ""
	}
	v.Member("projects").EachMember(func(m rawjson.Member) bool {
		dir, _ := m.Key.Text()
		if name, ok := m.Value.Text(); ok && f(dir, name) {
			found = dir
		}
		return found == ""
	})
	return found
}

// cwd returns the working directory of a project, "" if no file names it.
func (h *home) cwd(project string) string {
	if root := h.text(path.Join(projectsDir, project, ".project_root")); len(root) > 0 {
		return string(root)
	}
	return h.find(func(dir, name string) bool { return name == project || projectOf(dir) == project })
}

// projectOf returns the name of a directory's project in older clients.
func projectOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])
}
