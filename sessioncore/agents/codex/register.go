package codex

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/gzip"
)

func init() {
	agents.Register(agents.Agent{
		Name:    Name,
		Title:   "Codex",
		Homes:   []string{"$CODEX_HOME", "~/.codex"},
		Dirs:    []string{sessionsDir, archivedDir},
		Keeps:   true,
		Detect:  detect,
		Open:    open,
		NameOf:  nameOf,
		Prompts: func(files storage.Files) history.History { return history.Lines(files) },
		Tools: message.Tools{
			"apply_patch": {
				Arguments: map[string]message.Argument{
					"input": {Use: message.PatchUse}, "patch": {Use: message.PatchUse, Role: message.DiffRole},
				},
				Records: []string{patchEvent, "FileChange"},
			},
			"exec_command":     {Records: []string{"CommandExecution"}},
			"view_image":       {Records: []string{"ImageView"}},
			"web_search":       {ByProvider: true},
			"image_generation": {ByProvider: true, Records: []string{"ImageGeneration"}},
		},
		Typed:        typed,
		Instructions: "codex/message",
		Wrote:        wrote,
		Alone:        alone,
		Lone:         lone,
		Resume:       []string{"codex", "resume", "--"},
		IsID:         agents.IsUUID,

		AddServer:    []string{"codex", "mcp", "add", "sessionfs", "--", agents.Program},
		RemoveServer: []string{"codex", "mcp", "remove", "sessionfs"},
	})
}

// detect implements agents.Agent.Detect, by the directories of months and by rollouts.
func detect(dir string) bool {
	sessions := filepath.Join(dir, sessionsDir)
	archived := filepath.Join(dir, archivedDir)
	switch {
	case agents.HasDir(sessions, levels[:2]...), agents.HasDir(archived):
		return true
	case filepath.Base(dir) == ".codex" && agents.HasDir(sessions): // without a rollout yet
		return true
	}
	return agents.HasFile(sessions, prefix)
}

// lone implements agents.Agent.Lone: a file with another name than a rollout's gets one, with the id in its first record,
// else its own name, and with a time, as the real one is not needed.
func lone(base string, record rawjson.Value) (dir, below string) {
	const day = "2000/01/01"
	if isRollout(base) {
		return sessionsDir, path.Join(day, base)
	}
	id, _ := record.Member("payload").Member("id").Text()
	if !agents.IsUUID(id) {
		id = strings.TrimSuffix(base, ending)
	}
	rollout := prefix + "2000-01-01T00-00-00-" + id + ending
	return sessionsDir, path.Join(day, rollout)
}

// wrote implements agents.Agent.Wrote: a record in an envelope, or the header of a rollout of
// mid-2025 (bare.go).
func wrote(v rawjson.Value) bool {
	if v.Member("type") != nil {
		return v.Member("type").IsString() && v.Member("payload").IsObject()
	}
	hasInstructions := v.Member("instructions") != nil
	return hasInstructions && v.Member("id").IsString() && v.Member("timestamp").IsString()
}

// open implements agents.Agent.Open.
func open(source agents.Source) (agents.Store, error) {
	files := gzip.NewZstd(source.Files, source.Memory, source.Temporary) // the client compresses old rollouts
	home := New(files, source.Path)
	return agents.Store{
		Files:  home,
		Format: home,
		Path:   filepath.Join(source.Path, sessionsDir),
		Root:   source.Path,
	}, nil
}

// nameOf implements agents.Agent.NameOf: it returns the name of a file or directory as Days shows it.
func nameOf(dir, below string) string {
	isInDay := strings.Count(below, "/") > 1
	switch {
	case dir == sessionsDir && isInDay:
		return strings.Replace(below, "/", "-", 2) // YYYY/MM/DD is YYYY-MM-DD
	case dir == sessionsDir && !strings.HasPrefix(below, prefix):
		return below
	}
	return path.Join(dir, below)
}

// alone implements agents.Agent.Alone. It refuses a rollout that goes on from another one, which it could not find.
func alone(files storage.Files, meta rawjson.Value) (agents.Format, error) {
	if meta.Member("payload").Member("history_base").IsObject() {
		return nil, errors.New("it goes on from another rollout: name it where it lies, in ~/.codex")
	}
	return New(files, "/"), nil
}
