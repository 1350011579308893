package opencode

import (
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// openCode is the name of the original agent; Kilo Code and MiMo Code are its relatives.
const openCode = "opencode"

func init() {
	register(openCode, "OpenCode", "opencode", "opencode")
	register("kilo", "Kilo Code", "kilo", "kilo")
	register("mimo", "MiMo Code", "mimocode", "mimocode")
}

// register registers an agent whose directory of data and database begin with names.
func register(name, title, dir, database string) {
	agents.Register(agents.Agent{
		Name:   name,
		Title:  title,
		Homes:  []string{"$XDG_DATA_HOME/" + dir, "~/.local/share/" + dir},
		Dirs:   []string{documentsDir},
		Detect: func(dir string) bool { return isHome(dir, database) },
		Open: func(source agents.Source) (agents.Store, error) {
			h := newHome(source, name, database)
			return agents.Store{Files: h, Format: formatOf(h), Path: source.Path}, nil
		},
		NameOf:      func(dir, below string) string { return path.Join(dir, below) },
		Wrote:       func(record rawjson.Value) bool { return name == openCode && wrote(record) }, // its relatives write the same
		Alone:       func(storage.Files, rawjson.Value) (agents.Format, error) { return formatOf(&home{name: name}), nil },
		NamesAreIDs: true,
		Keeps:       true,
		Resume:      []string{name, "--session="},
		IsID:        func(id string) bool { return strings.HasPrefix(id, idPrefix) && len(id) > len(idPrefix) },
	})
}

// isHome reports whether a directory is the home of an agent with a database of a name. Only the database tells it for
// certain; documents and kept texts are called alike in the homes of other agents, so that the name of the directory counts.
func isHome(dir, database string) bool {
	hasDatabase := agents.HasFile(dir, database+databaseEnding) || agents.HasFile(dir, database+"-")
	base := path.Base(dir)
	hasDocuments := base == database && agents.HasDir(dir, documentsDir, sessionDir)
	hasTexts := strings.HasPrefix(base, database) && agents.HasDir(dir, textsDir)
	return hasDatabase || hasDocuments || hasTexts
}

// wrote reports whether a record is a line that this package makes, or the document of a session.
func wrote(record rawjson.Value) bool {
	id, _ := record.Member("id").Text()
	isDocument := strings.HasPrefix(id, idPrefix) && record.Member("directory").IsString()
	isFacts := record.Member("session").Member("directory").IsString()
	return isDocument || isFacts
}

// formatOf returns the form of a home's sessions. Only OpenCode's own command for new ones is known.
func formatOf(h *home) agents.Format {
	if h.name == openCode {
		return forkable{h}
	}
	return h
}
