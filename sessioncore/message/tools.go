package message

import (
	"maps"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// Use is the purpose of an argument of a tool for a search by files.
type Use uint8

// The uses.
const (
	OtherUse     Use = iota
	PathUse          // the name of a file, or of several in a list
	PathsUse         // names of files separated by semicolons
	PatchUse         // a patch: of apply_patch, or of omp's edit
	ContentUse       // old or new text of a file, which names none
	DirectoryUse     // the directory of relative names in patches
)

// ArgumentRole is the purpose of an argument of a tool to readers of the call.
type ArgumentRole uint8

// The roles.
const (
	OtherRole   ArgumentRole = iota
	FileRole                 // the edited file
	OldRole                  // text that an edit replaces
	NewRole                  // text that replaces it
	DiffRole                 // a diff, or a patch of apply_patch
	EditsRole                // a list of several edits
	ContentRole              // the text of a file that is written
	CommandRole              // a command of a shell; of a tool with several ways to edit, the way
	VerbRole                 // the way that a tool edits
	IntentRole               // the reason for a call that has a command
	AllRole                  // whether an edit replaces the old text wherever it is
	BehindRole               // the number of the line behind which an edit puts the new text
	// Roles is the number of roles.
	Roles
)

// Argument describes an argument of a tool.
type Argument struct {
	Use  Use
	Role ArgumentRole
}

// Tool describes a tool of an agent.
type Tool struct {
	// Arguments are the arguments, in camelCase, with a meaning that depends on the tool.
	Arguments map[string]Argument
	// ByProvider says that a provider runs the tool itself, so that the agent may keep no result.
	ByProvider bool
	// Records are texts of the agent's records of calls that lack the tool's name. A session's call
	// has it.
	Records []string
}

// Tools describes tools by their names.
type Tools map[string]Tool

var (
	// arguments are the arguments of tools of any agent, by their names in camelCase.
	arguments = map[string]Argument{
		"path": {PathUse, FileRole}, "filePath": {PathUse, FileRole}, "file": {PathUse, FileRole},
		"filename": {PathUse, FileRole},
		"paths":    {Use: PathUse}, "files": {Use: PathUse}, "absolutePath": {Use: PathUse},
		"relativePath": {Use: PathUse}, "notebookPath": {Use: PathUse}, "targetFile": {Use: PathUse},
		"oldPath": {Use: PathUse}, "newPath": {Use: PathUse}, "rename": {Use: PathUse}, "move": {Use: PathUse},
		"dir": {Use: PathUse}, "directory": {Use: PathUse}, "dirPath": {Use: PathUse}, "workdir": {Use: DirectoryUse},
		"oldString": {ContentUse, OldRole}, "oldText": {ContentUse, OldRole}, "oldStr": {ContentUse, OldRole},
		"newString": {ContentUse, NewRole}, "newText": {ContentUse, NewRole}, "newStr": {ContentUse, NewRole},
		"content": {ContentUse, ContentRole}, "fileText": {ContentUse, ContentRole}, "newSource": {Use: ContentUse},
		"replaceAll": {Role: AllRole}, "allowMultiple": {Role: AllRole}, "all": {Role: AllRole},
		"expectedReplacements": {Role: AllRole}, "insertLine": {Role: BehindRole},
		"diff": {Role: DiffRole}, "patch": {Role: DiffRole}, "edits": {Role: EditsRole}, "op": {Role: VerbRole},
		"command": {Role: CommandRole}, "cmd": {Role: CommandRole}, "description": {Role: IntentRole},
	}
	// tools are the tools of omp, of pi where their names are the same, and of all registered
	// agents.
	tools = Tools{
		"read": paths("path"), "glob": paths("path", "paths"), "grep": paths("path", "paths"),
		"find": paths("path", "paths"), "search": paths("path", "paths"), "ast_grep": paths("path", "paths"),
		"ast_edit": paths("path", "paths"),
		"edit": {Arguments: map[string]Argument{
			"input": {Use: PatchUse}, "_input": {Use: PatchUse}, "patch": {PatchUse, DiffRole},
		}},
		"debug": {Arguments: map[string]Argument{"program": {Use: PathUse}}},
		"move": {Arguments: map[string]Argument{
			"from": {Use: PathUse}, "to": {Use: PathUse}, "destination": {Use: PathUse},
		}},
	}
)

// paths returns a tool with lists of files, separated by semicolons, as its arguments of these names.
func paths(names ...string) Tool {
	t := Tool{Arguments: map[string]Argument{}}
	for _, name := range names {
		t.Arguments[name] = Argument{Use: PathsUse, Role: arguments[name].Role}
	}
	return t
}

// Register adds an agent's tools, and the providers that bill its requests instead of tokens. Tools of one name are joined;
// of one argument the last description counts. Call it only from an init.
func Register(t Tools, providers []string) {
	byRequest = append(byRequest, providers...)
	for name, added := range t {
		all := maps.Clone(tools[name].Arguments)
		if all == nil {
			all = map[string]Argument{}
		}
		maps.Copy(all, added.Arguments)
		tools[name] = Tool{
			Arguments:  all,
			ByProvider: tools[name].ByProvider || added.ByProvider,
			Records:    append(tools[name].Records, added.Records...),
		}
	}
}

// WritesWhole reports whether a tool writes the whole text of a file. verb is the way in which it
// edits, if it has several.
func WritesWhole(tool string, verb rawjson.Value) bool {
	isWriter := strings.Contains(strings.ToLower(tool), "write")
	return isWriter || tool == "create" || verb.Is("create")
}

// ByProvider reports whether a provider runs a tool itself, so that its result may be missing.
func ByProvider(tool string) bool { return tools[tool].ByProvider }

// RecordsOf returns the Records of each tool with a text in its name. The text is in lower case.
func RecordsOf(text string) (records []string) {
	for name, tool := range tools {
		if strings.Contains(name, text) {
			records = append(records, tool.Records...)
		}
	}
	slices.Sort(records)
	return records
}

// ArgumentOf returns the description of an argument of a tool, by its name in camelCase: the tool's own, else that of all
// tools, else the zero one.
func ArgumentOf(tool, argument string) Argument {
	own, hasOwn := tools[tool].Arguments[argument]
	if hasOwn {
		return own
	}
	return arguments[argument]
}
