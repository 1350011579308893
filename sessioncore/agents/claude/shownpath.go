package claude

import (
	"path"
	"strings"
)

// shownPath is a path below the directory of all projects, as Projects shows it, in its parts.
type shownPath struct {
	level   pathLevel
	project string // "" for the directory of all projects
	entry   string // in the project: a file, or the directory of a session, named by the id
	sub     string // a directory of the session: subagents or another one
	below   string // in that directory, with slashes in it for files of its own directories
}

// pathLevel tells how deep a path lies, and whether it may show subagents.
type pathLevel int

const (
	rootLevel      pathLevel = iota // the directory of all projects
	projectLevel                    // PROJECT
	entryLevel                      // PROJECT/ENTRY
	subagentsLevel                  // PROJECT/SESSION/subagents
	subagentLevel                   // PROJECT/SESSION/subagents/FILE
	nestedLevel                     // deeper paths below PROJECT/SESSION/subagents
	otherLevel                      // PROJECT/SESSION/DIR with another DIR, and paths below it: never with subagents
)

// parsePath parses a shown path, "" for the directory of all projects.
func parsePath(name string) shownPath {
	var p shownPath
	p.project, name, _ = strings.Cut(name, "/")
	p.entry, name, _ = strings.Cut(name, "/")
	p.sub, p.below, _ = strings.Cut(name, "/")
	switch {
	case p.project == "":
		p.level = rootLevel
	case p.entry == "":
		p.level = projectLevel
	case p.sub == "":
		p.level = entryLevel
	case p.sub != subagents:
		p.level = otherLevel
	case p.below == "":
		p.level = subagentsLevel
	case !strings.Contains(p.below, "/"):
		p.level = subagentLevel
	default:
		p.level = nestedLevel
	}
	return p
}

// isBelowSubagents reports whether a path lies below the directory of a session's subagents, at any depth.
func (p *shownPath) isBelowSubagents() bool {
	return p.level == subagentLevel || p.level == nestedLevel
}

// sessionFile returns the path of a session's file, for a path in the session's directory.
func (p *shownPath) sessionFile() string { return path.Join(p.project, p.entry+ending) }
