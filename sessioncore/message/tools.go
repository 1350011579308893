package message

// Use is the purpose of an argument of a tool.
type Use uint8

// The uses.
const (
	OtherUse     Use = iota
	PathUse          // names a file, or several in a list
	PathsUse         // names files with a ; between them
	PatchUse         // is a patch: of apply_patch, or of omp's edit
	ContentUse       // is, or was, text of a file, which names none
	DirectoryUse     // is the directory that names in patches are relative to
)

// uses are the arguments, in camelCase, of tools of any client; toolUses those whose meaning
// depends on the tool.
var (
	uses = map[string]Use{
		"path": PathUse, "filePath": PathUse, "file": PathUse, "filename": PathUse, "paths": PathUse, "files": PathUse,
		"absolutePath": PathUse, "relativePath": PathUse, "notebookPath": PathUse, "targetFile": PathUse, "oldPath": PathUse, "newPath": PathUse,
		"rename": PathUse, "move": PathUse, "dir": PathUse, "directory": PathUse, "dirPath": PathUse, "workdir": DirectoryUse,
		"content": ContentUse, "fileText": ContentUse, "oldString": ContentUse, "newString": ContentUse,
		"oldText": ContentUse, "newText": ContentUse, "oldStr": ContentUse, "newStr": ContentUse, "newSource": ContentUse,
	}
	toolUses = map[string]map[string]Use{
		// omp, and pi where its tools are called alike
		"read": {"path": PathsUse}, "glob": {"path": PathsUse, "paths": PathsUse},
		"grep": {"path": PathsUse, "paths": PathsUse},
		"find": {"path": PathsUse, "paths": PathsUse}, "search": {"path": PathsUse, "paths": PathsUse},
		"ast_grep": {"path": PathsUse, "paths": PathsUse}, "ast_edit": {"path": PathsUse, "paths": PathsUse},
		"edit": {"input": PatchUse, "_input": PatchUse, "patch": PatchUse}, "debug": {"program": PathUse},
		"move": {"from": PathUse, "to": PathUse, "destination": PathUse},
		// Codex, and others that have it
		"apply_patch": {"input": PatchUse, "patch": PatchUse},
		// Gemini CLI
		"read_many_files": {"include": PathUse},
	}
)

// useOf returns the use of an argument of a tool, by its name in camelCase.
func useOf(tool, argument string) Use {
	if use, ok := toolUses[tool][argument]; ok {
		return use
	}
	return uses[argument]
}
