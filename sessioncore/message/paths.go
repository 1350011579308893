package message

import (
	"bytes"
	"path"

	"sessionfs/sessioncore/internal/rawjson"
)

// pathKeys are the arguments, in camelCase, in which the tools of the clients and of others name files.
var pathKeys = map[string]bool{
	"path": true, "filePath": true, "file": true, "filename": true, "paths": true, "files": true, "absolutePath": true, "relativePath": true,
	"notebookPath": true, "targetFile": true, "oldPath": true, "newPath": true, "rename": true, "move": true, "dir": true, "directory": true,
}

const (
	// MaxPath is how many bytes of the file a path among the arguments of a call has at most. No system opens longer ones, and
	// whether a string is one can be told from the bytes around any part of it.
	MaxPath = 4096
	// maxArgumentDepth is how deep arguments in arguments are followed: to the path of each of several edits.
	maxArgumentDepth = 4
)

// EachPath calls f for each path of a file that the arguments of a call name: as an argument of their own, or in a patch,
// wherever that stands.
func EachPath(arguments rawjson.Value, f func(string)) {
	eachPath(arguments, 0, false, f, func(name string) {
		if dir, ok := arguments.Member("workdir").Text(); ok && !path.IsAbs(name) {
			name = path.Join(dir, name)
		}
		f(name)
	})
}

// eachPath calls f for each path in a value at a depth below the arguments of a call, and patched for those in patches. isPath
// says that the value is one, or a list of them.
func eachPath(v rawjson.Value, depth int, isPath bool, f, patched func(string)) {
	if v.IsString() {
		if isPath && len(v) <= MaxPath+len(`""`) {
			text, _ := v.Text()
			f(text)
		}
		eachPatched(v[1:len(v)-1], patched)
		return
	}
	if depth < maxArgumentDepth {
		for m := range v.EachMember {
			eachPath(m.Value, depth+1, pathKeys[m.Name()], f, patched)
		}
	}
	if depth <= maxArgumentDepth {
		for e := range v.EachElement {
			eachPath(e, depth+1, isPath, f, patched)
		}
	}
}

// patchBegin begins a patch of the tool apply_patch, which is also run as a command of a shell.
var patchBegin = []byte("*** Begin Patch")

// patchLines begin the lines of a patch that name files.
var patchLines = [][]byte{[]byte("*** Add File: "), []byte("*** Update File: "), []byte("*** Delete File: "), []byte("*** Move to: ")}

// eachPatched calls f for each path that patches in the body of a string name.
func eachPatched(body []byte, f func(string)) {
	at := bytes.Index(body, patchBegin)
	for at >= 0 {
		if at == 0 || bytes.HasSuffix(body[:at], []byte(`\n`)) {
			if name := patchPath(body[at:]); name != nil {
				f(string(bytes.TrimRight(rawjson.AppendDecoded(nil, name), " ")))
			}
		}
		next := bytes.Index(body[at+1:], []byte("*** "))
		if at++; next < 0 {
			return
		}
		at += next
	}
}

// patchPath returns the path in a line of a patch that begins text, as it is in the body of a string; nil if it has none.
func patchPath(text []byte) []byte {
	for _, begin := range patchLines {
		if name, ok := bytes.CutPrefix(text, begin); ok {
			return name[:lineEnd(name[:min(len(name), MaxPath)])]
		}
	}
	return nil
}

// lineEnd returns where a line in the body of a string ends: before a quote, or before the backslashes of a line break, which
// are several where the string is that of another language within the JSON.
func lineEnd(text []byte) int {
	slashes := 0
	for end, c := range text {
		switch {
		case c == '"', slashes > 0 && (c == 'n' || c == 'r'):
			return end - slashes
		case c == '\\':
			slashes++
		default:
			slashes = 0
		}
	}
	return len(text) - slashes
}

// IsPatched reports whether an offset of the bytes of a file can be in the path in a line of a patch. It looks at no more than
// MaxPath bytes before it.
func IsPatched(b []byte, at int) bool {
	least := max(0, at-MaxPath)
	begin := bytes.LastIndex(b[least:at], []byte("*** "))
	if begin < 0 {
		return false
	}
	begin += least
	name := patchPath(b[begin:])
	begin += bytes.IndexByte(b[begin:], ':') + len(": ")
	return name != nil && at >= begin && at < begin+len(name)
}
