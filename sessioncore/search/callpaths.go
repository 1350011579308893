package search

import (
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// pathKeys are the arguments, in camelCase, in which the tools of the clients and of others name files.
var pathKeys = map[string]bool{
	"path": true, "filePath": true, "file": true, "filename": true, "paths": true, "files": true, "absolutePath": true, "relativePath": true,
	"notebookPath": true, "targetFile": true, "oldPath": true, "newPath": true, "rename": true, "move": true, "dir": true, "directory": true,
}

// eachCall calls f for each call of a tool in the content of a message.
func eachCall(content rawjson.Value, depth int, f func(*message.Members)) {
	if depth > maxContentDepth {
		return
	}
	look := func(v rawjson.Value, _ int) bool {
		b := message.Read(v)
		if b.Kind() == message.CallKind {
			f(&b)
		}
		eachCall(b[message.Block], depth+1, f)
		return true
	}
	if content.IsObject() {
		look(content, 0)
	}
	content.EachElement(look)
}

// maxArgumentDepth is how deep arguments in arguments are followed: to the path of each of several edits.
const maxArgumentDepth = 4

// eachPath calls f for each path in a value at a depth below the arguments of a call. isPath says that it is one, or a
// list of them.
func eachPath(v rawjson.Value, depth int, isPath bool, f func(string)) {
	if isPath && v.IsString() && len(v) <= maxPath+len(`""`) {
		text, _ := v.Text()
		f(text)
	}
	if depth < maxArgumentDepth {
		v.EachMember(func(m rawjson.Member) bool {
			eachPath(m.Value, depth+1, pathKeys[m.Name()], f)
			return true
		})
	}
	if depth <= maxArgumentDepth {
		v.EachElement(func(e rawjson.Value, _ int) bool {
			eachPath(e, depth+1, isPath, f)
			return true
		})
	}
}
