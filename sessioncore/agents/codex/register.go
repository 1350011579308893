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
		Name:    "codex", // by omp's own import too
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

// detect reports whether a directory is of Codex.
func detect(dir string) bool {
	sessions := filepath.Join(dir, sessionsDir)
	return agents.HasDir(sessions, levels[:2]...) ||
		agents.HasDir(sessions) && filepath.Base(dir) == ".codex" ||
		agents.HasDir(filepath.Join(dir, archivedDir)) || agents.HasFile(sessions, prefix)
}

// lone returns the place of a rollout from anywhere. Its name gets the id in the first record.
func lone(base string, record rawjson.Value) (dir, below string) {
	if !isRollout(base) {
		payload := record.Member("payload")
		id, _ := payload.Member("id").Text()
		if !agents.IsUUID(id) {
			id = strings.TrimSuffix(base, ending)
		}
		base = prefix + "2000-01-01T00-00-00-" + id + ending
	}
	return sessionsDir, path.Join("2000/01/01", base)
}

// wrote reports whether a record is of Codex: a record in an envelope, or the header of a rollout of
// mid-2025 (bare.go).
func wrote(v rawjson.Value) bool {
	if v.Member("type") != nil {
		return v.Member("type").IsString() && v.Member("payload").IsObject()
	}
	hasInstructions := v.Member("instructions") != nil
	return hasInstructions && v.Member("id").IsString() && v.Member("timestamp").IsString()
}

// open returns the rollouts below a directory of Codex.
func open(source agents.Source) (agents.Store, error) {
	home := New(gzip.NewZstd(source.Files, source.Memory, source.Temporary), source.Path)
	return agents.Store{Files: home, Format: home, Path: filepath.Join(source.Path, sessionsDir), Root: source.Path}, nil
}

// nameOf returns the name of a file or directory as Days shows it.
func nameOf(dir, below string) string {
	switch {
	case dir == sessionsDir && strings.Count(below, "/") > 1:
		return strings.Replace(below, "/", "-", 2)
	case dir == sessionsDir && !strings.HasPrefix(below, prefix):
		return below
	}
	return path.Join(dir, below)
}

// alone returns the converter of a rollout anywhere.
func alone(files storage.Files, meta rawjson.Value) (agents.Format, error) {
	if meta.Member("payload").Member("history_base").IsObject() {
		return nil, errors.New("it goes on from another rollout: name it where it lies, in ~/.codex")
	}
	return New(files, "/"), nil
}
