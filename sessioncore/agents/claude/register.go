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
		Name:      "claude", // by omp's own import too
		Title:     "Claude Code",
		Homes:     []string{"$CLAUDE_CONFIG_DIR", "~/.claude"},
		Dirs:      []string{projectsDir},
		Keeps:     true,
		Deletes:   30 * 24 * time.Hour,
		DeletesBy: "cleanupPeriodDays",
		Detect:    detect,
		Open:      open,
		NameOf:    func(_, below string) string { return below },
		Prompts:   func(files storage.Files) history.History { return history.Lines(files) },
		Typed:     typed,
		Wrote:     wrote,
		Alone:     func(storage.Files, rawjson.Value) (agents.Format, error) { return Format{}, nil },
		IsPart: func(file string) bool { // a subagent's file belongs to the session that called it
			return strings.Contains("/"+file, "/"+projectsDir+"/") && strings.HasPrefix(path.Base(file), agentPrefix)
		},
		Lone:        func(base string, _ rawjson.Value) (dir, below string) { return projectsDir, path.Join("-file", base) },
		NamesAreIDs: true,
		Linked:      true,

		Resume: []string{"claude", "--resume="},
		IsID:   agents.IsUUID,

		AddServer:    []string{"claude", "mcp", "add", "--scope", "user", "sessionfs", "--", agents.Program},
		RemoveServer: []string{"claude", "mcp", "remove", "--scope", "user", "sessionfs"},
	})
}

// detect reports whether a directory is of Claude Code. Its directory projects, unlike others, has
// names of absolute paths, also of Windows (C--).
func detect(dir string) bool {
	projects := filepath.Join(dir, projectsDir)
	_, hasPrompts := os.Stat(filepath.Join(dir, history.LinesName))
	return agents.HasDir(projects, "-*") || agents.HasDir(projects, "[A-Za-z]--*") ||
		agents.HasDir(projects) && (filepath.Base(dir) == ".claude" || hasPrompts == nil)
}

// wrote reports whether a record is of Claude Code. Titles and snapshots of old clients name no
// session.
func wrote(v rawjson.Value) bool {
	typ := v.Member("type")
	message := v.Member("message")
	isOther := isOfOther(message.Member("parts"), v.Member("systemPayload"))
	isTurn := (typ.Is("user") || typ.Is("assistant")) && message.Member("role").IsString()
	isTitle := typ.Is("summary") && v.Member("leafUuid").IsString()
	isSnapshot := typ.Is("file-history-snapshot") && v.Member("messageId").IsString()
	return !isOther && (typ.IsString() && v.Member("sessionId").IsString() || isTurn || isTitle || isSnapshot)
}

// isOfOther reports whether a record is of Qwen Code, by the parts of its message or its payload.
// Qwen Code has the same envelope around messages of Gemini CLI.
func isOfOther(parts, payload rawjson.Value) bool { return parts.IsArray() || payload.IsObject() }

// open returns the sessions below a directory of Claude Code.
func open(source agents.Source) (agents.Store, error) {
	files, at, err := source.Sub(projectsDir)
	if err != nil {
		return agents.Store{}, err
	}
	projects := NewProjects(files)
	return agents.Store{Files: projects, Format: Format{Projects: projects}, Path: at, Root: at}, nil
}
