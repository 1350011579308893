package claude

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// projectsDir is the directory with the sessions.
const projectsDir = "projects"

func init() {
	agents.Register(agents.Agent{
		Name:        Name,
		Title:       "Claude Code",
		Homes:       []string{"$CLAUDE_CONFIG_DIR", "~/.claude"},
		Dirs:        []string{projectsDir},
		Keeps:       true,
		Deletes:     30 * 24 * time.Hour,
		DeletesBy:   "cleanupPeriodDays",
		Detect:      detect,
		Open:        open,
		NameOf:      func(_, below string) string { return below },
		Prompts:     func(files storage.Files) history.History { return history.Lines(files) },
		Typed:       typed,
		Wrote:       wrote,
		Alone:       alone,
		IsPart:      isPart,
		Lone:        lone,
		NamesAreIDs: true,
		Linked:      true,

		Resume: []string{"claude", "--resume="},
		IsID:   agents.IsUUID,

		AddServer:    []string{"claude", "mcp", "add", "--scope", "user", "sessionfs", "--", agents.Program},
		RemoveServer: []string{"claude", "mcp", "remove", "--scope", "user", "sessionfs"},
	})
}

// alone implements agents.Agent.Alone.
func alone(storage.Files, rawjson.Value) (agents.Format, error) { return Format{}, nil }

// isPart implements agents.Agent.IsPart: a subagent's file belongs to the session that called it.
func isPart(file string) bool {
	isBelowProjects := strings.Contains("/"+file, "/"+projectsDir+"/")
	return isBelowProjects && strings.HasPrefix(path.Base(file), agentPrefix)
}

// lone implements agents.Agent.Lone: a file by itself is shown as a session of the project -file.
func lone(base string, _ rawjson.Value) (dir, below string) {
	return projectsDir, path.Join("-file", base)
}

// detect implements agents.Agent.Detect. The directory projects of Claude Code, unlike others', has names of absolute
// paths, also of Windows (C--).
func detect(dir string) bool {
	projects := filepath.Join(dir, projectsDir)
	if agents.HasDir(projects, "-*") || agents.HasDir(projects, "[A-Za-z]--*") {
		return true
	}
	if !agents.HasDir(projects) {
		return false
	}
	_, err := os.Stat(filepath.Join(dir, history.LinesName)) // a home without a session yet may have prompts
	return err == nil || filepath.Base(dir) == ".claude"
}

// wrote implements agents.Agent.Wrote: most records name their session. Turns of other programs, and titles and snapshots
// of old clients, name none.
func wrote(v rawjson.Value) bool {
	typ := v.Member("type")
	message := v.Member("message")
	if isOfOther(message.Member("parts"), v.Member("systemPayload")) {
		return false
	}
	isSpeech := typ.Is("user") || typ.Is("assistant")
	switch {
	case typ.IsString() && v.Member("sessionId").IsString():
		return true
	case isSpeech:
		return message.Member("role").IsString()
	case typ.Is("summary"):
		return v.Member("leafUuid").IsString()
	case typ.Is("file-history-snapshot"):
		return v.Member("messageId").IsString()
	}
	return false
}

// isOfOther reports whether a record is of Qwen Code, by the parts of its message or its payload.
// Qwen Code has the same envelope around messages of Gemini CLI.
func isOfOther(parts, payload rawjson.Value) bool { return parts.IsArray() || payload.IsObject() }

// open implements agents.Agent.Open.
func open(source agents.Source) (agents.Store, error) {
	files, at, err := source.Sub(projectsDir)
	if err != nil {
		return agents.Store{}, err
	}
	projects := NewProjects(files)
	return agents.Store{
		Files:  projects,
		Format: Format{Projects: projects},
		Path:   at,
		Root:   at,
	}, nil
}
