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
)

// Agent describes a coding agent: where its files are, and the functions that read them. A function
// may be nil only where its comment says so.
type Agent struct {
	// Name is the agent's name in options, queries, JSON and below sessions/, such as claude.
	Name string
	// Title is its name for people, such as Claude Code.
	Title string
	// Homes are the usual paths of its directory. The first one with a set environment variable
	// wins, such as $CLAUDE_CONFIG_DIR or $GEMINI_CLI_HOME/.gemini; the last one is in the home
	// directory, such as ~/.claude. One below $XDG_STATE_HOME and the like, from old clients,
	// counts only if it exists and the last one does not.
	Homes []string
	// Dirs are the directories in it with session files. An import of it reads only these.
	Dirs []string
	// Detect reports whether a directory of the machine is the agent's, by the names in it (HasDir,
	// HasFile). Of has ruled out sessions of omp before.
	Detect func(dir string) bool
	// Open returns the sessions in an agent's directory. It reads nothing, as files may be missing.
	Open func(Source) (Store, error)
	// NameOf returns a path's name in Store.Files. dir is one of Dirs; below, the rest of the path.
	NameOf func(dir, below string) string
	// Prompts returns the prompt history in the agent's directory, which may be empty, or is nil.
	Prompts func(files storage.Files) history.History

	// Tools are the agent's tools that differ from the usual ones; message.ArgumentOf has the
	// usual names of arguments. It may be nil.
	Tools message.Tools
	// ByRequest are the providers, as named in answers, that bill requests and not tokens, so that
	// list prices do not apply. It may be nil.
	ByRequest []string

	// Typed returns the person's words in a text of a user's message that begins with <, [ or #, and
	// whether the agent put anything around them. It is asked about sessions of any agent. Nil: it
	// puts nothing there.
	Typed func(text string) (typed string, isWrapped bool)

	// Wrote reports whether a record is the agent's, to import a file from anywhere.
	Wrote func(record rawjson.Value) bool
	// Alone returns the converter of a file anywhere in files, for whose record Wrote is true, or
	// an error if the session needs other files. With nil files and record it tells sessions by
	// their names.
	Alone func(files storage.Files, record rawjson.Value) (Format, error)
	// IsPart reports whether the file at a path belongs to another session. Nil: none does.
	IsPart func(path string) bool
	// Lone returns the place of a session file from anywhere, with such a record, in an agent's directory:
	// one of Dirs, and the path below it. base is the file's name. Nil: no session is one file.
	Lone func(base string, record rawjson.Value) (dir, below string)
	// NamesAreIDs says that the name of a session in Store.Files is its id, whatever its records say.
	NamesAreIDs bool

	// Keeps says that sessionfs keep copies the agent's sessions, the texts of Composed ones into KeptTexts. Deletes is the age at which the
	// agent deletes unused sessions by default; 0 for never. DeletesBy is the agent's setting of it.
	Keeps     bool
	Deletes   time.Duration
	DeletesBy string
	// DeletesResumed says that the agent deletes a session at its next start once it was resumed.
	DeletesResumed bool

	// Instructions is the customType of entries with the program's own instructions to its model, which no
	// other agent's model is sent. "" for none.
	Instructions string
	// Linked says that each record names the one before it, so that a damaged line is on a branch only
	// where the branch begins behind it.
	Linked bool

	// Resume is the command line that continues a session, without the id, which joins a last "=".
	Resume []string
	// IsID reports whether an id has the agent's form. Resume takes no other ids.
	IsID func(id string) bool

	// AddServer is the command line that adds a server of tools, named sessionfs, for all projects. Program
	// stands in it for the server's program, and the arguments of that follow. RemoveServer removes it.
	// Nil: no such command is known.
	AddServer, RemoveServer []string
}

// KeptTexts is the directory of the texts of Composed sessions that sessionfs keep copied.
const KeptTexts = "texts"

// Program stands for a program in a command line of an Agent.
const Program = "PROGRAM"

// Source is an agent's directory for Open.
type Source struct {
	Files storage.Files // the directory; no link in it is followed
	Path  string        // absolute
	// Sub opens a directory in it, which may be a link and may be missing.
	Sub       func(name string) (files storage.Files, path string, err error)
	Memory    *budget.Budget // bounds the texts in memory; nil has no bound
	Temporary string         // the directory for files without a name
}

// Store is an agent's sessions in its own form.
type Store struct {
	// Files has a directory at the root for each group of sessions, such as a project, with
	// sessions X.jsonl and their subagents' below X/. Shown hides all else.
	Files storage.Files
	// Format converts the sessions.
	Format Format
	// Path is the absolute path of Files, for messages and parents.
	Path string
	// Root is the absolute path of the directory that names of Renamed.FileOf are relative to.
	Root string
}

// FileNamer is the Files of a Store that know the agent's own files.
type FileNamer interface {
	storage.Files
	// FileOf returns the agent's own file of a session, by its name in Store.Root.
	FileOf(name string) (file string, err error)
}

// registered are the agents in the order of their names.
var registered []*Agent

// Register adds an agent, and makes its tools and its prompts known to package message. Only the init of the agent's
// package calls it. It panics for a name that is taken.
func Register(a Agent) {
	if Find(a.Name) != nil {
		panic("agents: " + a.Name + " is registered twice")
	}
	registered = append(registered, &a)
	slices.SortFunc(registered, func(left, right *Agent) int {
		return cmp.Compare(left.Name, right.Name)
	})
	message.Register(a.Tools, a.ByRequest)
	if a.Typed != nil {
		message.RegisterTyped(a.Typed)
	}
}

// All returns the agents in the order of their names. Callers must not modify the slice.
func All() []*Agent { return registered }

// Find returns the agent of a name, or nil.
func Find(name string) *Agent {
	return first(func(a *Agent) bool { return a.Name == name })
}

// first returns the first agent that a condition holds for, or nil.
func first(isWanted func(*Agent) bool) *Agent {
	i := slices.IndexFunc(registered, isWanted)
	if i < 0 {
		return nil
	}
	return registered[i]
}

// WriterOf returns the agent that wrote a record, or nil.
func WriterOf(record rawjson.Value) *Agent {
	return first(func(a *Agent) bool {
		return a.Wrote(record)
	})
}

// IsInstruction reports whether a customType is one of an agent's instructions to its own model.
func IsInstruction(customType string) bool {
	isOf := func(a *Agent) bool { return a.Instructions == customType }
	return customType != "" && slices.ContainsFunc(registered, isOf)
}

// IsPart reports whether the file at a path belongs to another session.
func IsPart(path string) bool {
	return slices.ContainsFunc(registered, func(a *Agent) bool {
		return a.IsPart != nil && a.IsPart(path)
	})
}

// Titles returns the names of all agents for people, with "or" before the last.
func Titles() string {
	var titles []string
	for _, a := range registered {
		titles = append(titles, a.Title)
	}
	return OneOf(titles)
}

// OneOf joins words with commas, and "or" before the last. It returns "" for no words.
func OneOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// Home returns the usual path of the agent's directory, the first one of Homes that counts. It need not exist. Home
// returns "" if the environment has none of the variables.
func (a *Agent) Home(getenv func(string) string) string {
	inHome := filepath.Join(getenv("HOME"), strings.TrimPrefix(a.InHome(), "~/"))
	for _, home := range a.Homes {
		variable, below := splitHome(home)
		dir := getenv(variable)
		if dir == "" {
			continue
		}
		if below != "" { // a variable alone is taken as it is written
			dir = filepath.Join(dir, below)
		}
		isOfOldClients := strings.HasPrefix(variable, "XDG_")
		if isOfOldClients && (HasDir(inHome) || !HasDir(dir)) {
			continue
		}
		return dir
	}
	return ""
}

// splitHome returns the environment variable in one of Homes, HOME for ~, and the path below its value, or "".
func splitHome(home string) (variable, below string) {
	variable, below, _ = strings.Cut(strings.TrimPrefix(home, "$"), "/")
	if variable == "~" {
		variable = "HOME"
	}
	return variable, below
}

// InHome returns the usual path of the agent's directory in the home directory, such as ~/.claude.
func (a *Agent) InHome() string { return a.Homes[len(a.Homes)-1] }

// Variable returns an assignment, as in NAME=VALUE, that makes dir the agent's directory. The value is dir without the
// path that the agent adds to it, as Homes says.
func (a *Agent) Variable(dir string) string {
	variable, below := splitHome(a.Homes[0])
	value := strings.TrimSuffix(dir, below)
	value = strings.TrimSuffix(value, "/")
	return variable + "=" + value
}
