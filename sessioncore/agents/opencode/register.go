package opencode

import (
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

func init() {
	register("opencode", "OpenCode", "opencode", "opencode")
	register("kilo", "Kilo Code", "kilo", "kilo")
	register("mimo", "MiMo Code", "mimocode", "mimocode")
}

// register registers an agent whose directory of data and database begin with names.
func register(name, title, dir, database string) {
	agents.Register(agents.Agent{
		Name:  name,
		Title: title,
		Homes: []string{"$XDG_DATA_HOME/" + dir, "~/.local/share/" + dir},
		Dirs:  []string{documentsDir},
		Detect: func(dir string) bool {
			return agents.HasFile(dir, database+databaseEnding) || agents.HasFile(dir, database+"-") ||
				path.Base(dir) == database && agents.HasDir(dir, documentsDir, sessionDir) ||
				strings.HasPrefix(path.Base(dir), database) && agents.HasDir(dir, textsDir)
		},
		Open: func(source agents.Source) (agents.Store, error) {
			h := newHome(source, name, database)
			return agents.Store{Files: h, Format: formatOf(h), Path: source.Path}, nil
		},
		NameOf:      func(dir, below string) string { return path.Join(dir, below) },
		Wrote:       func(v rawjson.Value) bool { return wrote(v) && name == "opencode" },
		Alone:       func(storage.Files, rawjson.Value) (agents.Format, error) { return formatOf(&home{name: name}), nil },
		NamesAreIDs: true,
		Keeps:       true,
		Resume:      []string{name, "--session="},
		IsID:        func(id string) bool { return strings.HasPrefix(id, idPrefix) && len(id) > len(idPrefix) },
	})
}

// wrote reports whether a record is a line that this package makes, or the document of a session.
func wrote(v rawjson.Value) bool {
	id, _ := v.Member("id").Text()
	isDocument := strings.HasPrefix(id, idPrefix) && v.Member("directory").IsString()
	return isDocument || v.Member("session").Member("directory").IsString()
}

// formatOf returns the form of a home's sessions. Only OpenCode's own command for new ones is known.
func formatOf(h *home) agents.Format {
	if h.name == "opencode" {
		return forkable{h}
	}
	return h
}
