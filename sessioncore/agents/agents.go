package agents

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// Agent describes a coding agent: the places of its files, and the functions that read them. Functions may be nil only where
// their comment says so.
type Agent struct {
	// Name is the agent's name in options, queries, JSON and below sessions/, such as claude.
	Name string
	// Title is its name for people, such as Claude Code.
	Title string
	// Homes are the usual paths of its directory: that of the first environment variable that is set counts, such as
	// $CLAUDE_CONFIG_DIR, or $GEMINI_CLI_HOME/.gemini; the last is in the home directory, such as ~/.claude. A directory below
	// $XDG_STATE_HOME and the like, as old clients have, counts only if it is there and the last one is not.
	Homes []string
	// Dirs are the directories in that one with session files. An import of an agent's directory reads nothing but these.
	Dirs []string
	// Detect reports whether a directory of the machine is the agent's, by the names in it (HasDir, HasFile). Of counts
	// one with sessions of omp as omp's before it asks.
	Detect func(dir string) bool
	// Open returns the sessions in an agent's directory. It reads nothing: files may be missing.
	Open func(Source) (Store, error)
	// NameOf returns the name in Store.Files of a file or directory, by the directory of Dirs in which it lies and its path
	// below that, which may be "".
	NameOf func(dir, below string) string
	// Prompts returns the prompt history in the agent's directory, whose file need not exist. It may be nil: there is none.
	Prompts func(files storage.Files) history.History

	// Tools are the agent's tools, as far as they differ from those that most agents have: message.ArgumentOf has the
	// usual names of arguments. It may be nil.
	Tools message.Tools
	// ByRequest are the providers that bill requests to the agent, not tokens, by their names in answers. List prices say
	// nothing of them. It may be nil.
	ByRequest []string

	// Wrote reports whether a record of a file is the agent's, for the import of a file that lies anywhere.
	Wrote func(record rawjson.Value) bool
	// Alone returns the converter of a file that lies anywhere among files, or an error if the session needs other files. Wrote
	// is true of record.
	Alone func(files storage.Files, record rawjson.Value) (foreign.Agent, error)
	// IsPart reports whether a file belongs to another session, by its path: an import of a directory passes over it. It may
	// be nil: none does.
	IsPart func(path string) bool

	// Keeps says that sessionfs keep copies the agent's sessions. Deletes is after how long the agent deletes a session
	// that nobody goes on with, by default; 0 for never.
	Keeps   bool
	Deletes time.Duration

	// Resume is the command line that continues a session: the session's id follows, joined to a last word that ends in "=".
	Resume []string
	// IsID reports whether the agent makes such ids for sessions. Resume is used for no others: a session file can name any id.
	IsID func(id string) bool
}

// Source is an agent's directory for Open.
type Source struct {
	Files storage.Files // the directory; no link in it is followed
	Path  string        // absolute
	// Sub opens a directory in it, which may be a link and need not exist.
	Sub       func(name string) (files storage.Files, path string, err error)
	Memory    *budget.Budget // bounds the texts in memory; nil has no bound
	Temporary string         // the directory for files without a name
}

// Store is an agent's sessions in its own form.
type Store struct {
	// Files has a directory at the root for each place with sessions, such as a project. Sessions are named X.jsonl, and their
	// subagents' lie below X/. It is wrapped by foreign.Shown, which shows nothing else.
	Files storage.Files
	// Agent converts the sessions.
	Agent foreign.Agent
	// Path is the absolute path at which Files lies, for messages and parents.
	Path string
}

// registered are the agents in the order of their names.
var registered []*Agent

// Register adds an agent. Only the init of the agent's package calls it.
func Register(a Agent) {
	at, found := slices.BinarySearchFunc(registered, a.Name, func(b *Agent, name string) int { return cmp.Compare(b.Name, name) })
	if found {
		panic("agents: " + a.Name + " is registered twice")
	}
	registered = slices.Insert(registered, at, &a)
	a.Tools.Register()
	message.BillRequests(a.ByRequest)
}

// All returns the agents in the order of their names. Callers must not modify the slice.
func All() []*Agent { return registered }

// Find returns the agent of a name, nil if there is none.
func Find(name string) *Agent {
	if i := slices.IndexFunc(registered, func(a *Agent) bool { return a.Name == name }); i >= 0 {
		return registered[i]
	}
	return nil
}

// WriterOf returns the agent that wrote a record, nil for none.
func WriterOf(record rawjson.Value) *Agent {
	if i := slices.IndexFunc(registered, func(a *Agent) bool { return a.Wrote(record) }); i >= 0 {
		return registered[i]
	}
	return nil
}

// IsPart reports whether a file belongs to another session, by its path.
func IsPart(path string) bool {
	return slices.ContainsFunc(registered, func(a *Agent) bool { return a.IsPart != nil && a.IsPart(path) })
}

// Titles returns the names of all agents for people, with "or" before the last.
func Titles() string {
	var titles []string
	for _, a := range registered {
		titles = append(titles, a.Title)
	}
	return OneOf(titles)
}

// OneOf returns words as a text: with commas, and "or" before the last.
func OneOf(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// Home returns the usual path of the agent's directory, "" if the environment names none.
func (a *Agent) Home(getenv func(string) string) string {
	inHome := filepath.Join(getenv("HOME"), strings.TrimPrefix(a.InHome(), "~/"))
	for _, home := range a.Homes {
		variable, below, _ := strings.Cut(strings.TrimPrefix(home, "$"), "/")
		if variable == "~" {
			variable = "HOME"
		}
		dir := getenv(variable)
		old := strings.HasPrefix(variable, "XDG_") && (HasDir(inHome) || !HasDir(filepath.Join(dir, below)))
		switch {
		case dir == "" || old:
		case below == "":
			return dir
		default:
			return filepath.Join(dir, below)
		}
	}
	return ""
}

// InHome returns the usual path of the agent's directory in the home directory, such as ~/.claude.
func (a *Agent) InHome() string { return a.Homes[len(a.Homes)-1] }

// Variable returns an assignment to the environment variable that names the agent's directory.
func (a *Agent) Variable(dir string) string {
	variable, below, _ := strings.Cut(strings.TrimPrefix(a.Homes[0], "$"), "/")
	return variable + "=" + strings.TrimSuffix(strings.TrimSuffix(dir, below), "/")
}
