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

// eachPath calls f for each path in the arguments of a call.
func eachPath(arguments rawjson.Value, f func(string)) { pathsBelow(arguments, 0, f) }

func pathsBelow(v rawjson.Value, depth int, f func(string)) {
	if depth == maxArgumentDepth {
		return
	}
	v.EachMember(func(m rawjson.Member) bool {
		if pathKeys[m.Name()] {
			pathsIn(m.Value, f)
		}
		pathsBelow(m.Value, depth+1, f)
		return true
	})
	v.EachElement(func(e rawjson.Value, _ int) bool {
		pathsBelow(e, depth+1, f)
		return true
	})
}

// pathsIn calls f for a string, or for each in an array.
func pathsIn(v rawjson.Value, f func(string)) {
	pathIn(v, f)
	v.EachElement(func(e rawjson.Value, _ int) bool {
		pathIn(e, f)
		return true
	})
}

func pathIn(v rawjson.Value, f func(string)) {
	if !v.IsString() || len(v) > maxPath+len(`""`) {
		return
	}
	if text, ok := v.Text(); ok {
		f(text)
	}
}
