package agents

import (
	"path/filepath"
	"slices"
)

// unreadAgents are known agents without a converter, by their usual directories as in Agent.Homes.
var unreadAgents = []Agent{
	{Title: "Cursor", Homes: []string{"~/.cursor"}},
	{Title: "Goose", Homes: []string{"$XDG_DATA_HOME/goose", "~/.local/share/goose"}},
	{Title: "Amp", Homes: []string{"$XDG_DATA_HOME/amp", "~/.local/share/amp"}},
	{Title: "Droid", Homes: []string{"~/.factory"}},
}

// RegisterUnread adds a known agent without a converter. Only the init of a package of a related agent
// calls it.
func RegisterUnread(title string, homes ...string) {
	unreadAgents = append(unreadAgents, Agent{Title: title, Homes: homes})
}

// UnreadHome is the directory of an agent that is not read.
type UnreadHome struct{ Title, Dir string }

// UnreadHomes returns the agents of this user that are not read, by their directories.
func UnreadHomes(getenv func(string) string) (found []UnreadHome) {
	for _, a := range unreadAgents {
		dir := a.Home(getenv)
		isRead := func(read *Agent) bool { // since it was listed, or by a fork that has its directory
			return read.Title == a.Title || read.Home(getenv) == dir
		}
		exists := filepath.IsAbs(dir) && HasDir(dir)
		if exists && !slices.ContainsFunc(registered, isRead) {
			found = append(found, UnreadHome{Title: a.Title, Dir: dir})
		}
	}
	return found
}

// TitleOfUnread returns the title of an agent that is not read and has a directory of dir's name,
// or "".
func TitleOfUnread(dir string) string {
	for _, a := range unreadAgents {
		isRead := func(read *Agent) bool {
			return read.Title == a.Title
		}
		hasName := filepath.Base(a.InHome()) == filepath.Base(dir)
		if hasName && !slices.ContainsFunc(registered, isRead) {
			return a.Title
		}
	}
	return ""
}
