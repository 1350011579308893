package message

import (
	"bytes"
	"path"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
)

const (
	// MaxPath bounds the bytes in the file of a path among the arguments of a call. No system opens
	// longer paths, and the bytes around any part of a string tell whether it is one.
	MaxPath = 4096
	// maxArgumentDepth bounds how deep arguments nest: to the path of each of several edits.
	maxArgumentDepth = 4
)

// EachPath calls f for each path in the arguments of a tool's call: an argument of its own, in a
// list, or in a patch in any argument. f reports whether it knows the path; if it knows none of a
// list, the list is passed as a path itself.
func EachPath(tool string, arguments rawjson.Value, f func(string) bool) {
	r := pathReader{tool: tool, f: f}
	dir := arguments.Member("workdir")
	if len(dir) <= MaxPath {
		r.dir, _ = dir.Text()
	}
	use := OtherUse
	if arguments.IsString() { // the tool has one argument, without a name
		use = ArgumentOf(tool, "input").Use
	}
	r.value(arguments, 0, use)
}

// EachResultPath calls f for each path in the details of a tool's result: the changed files, and
// their names before a move.
func EachResultPath(details rawjson.Value, f func(string) bool) {
	r := pathReader{f: f}
	r.file(details)
	for result := range details.Member("perFileResults").EachElement {
		r.file(result)
	}
	for edit := range details.Member("fileEdits").EachElement {
		r.file(edit)
	}
	r.value(details.Member("possiblePaths"), 0, PathUse)
	r.applied(details)
	success := details.Member("success")
	hasFailed := !success.Missing() && !success.Truthy() // then nothing was changed
	if !hasFailed {
		for change := range details.Member("changes").EachMember {
			r.value(change.Key, 0, PathUse)
			r.value(change.Value.AnyOf("move_path", "movePath"), 0, PathUse)
		}
	}
}

// file reads the path of a file in a result, and the one before a move.
func (r *pathReader) file(result rawjson.Value) {
	r.value(result.Member("path"), 0, PathUse)
	r.value(result.Member("sourcePath"), 0, PathUse)
}

// applied reads the files that omp's ast_edit changed, in its own result or in the result of the tool that
// applied a preview, at times by another tool. The files of a preview are not changed yet.
func (r *pathReader) applied(details rawjson.Value) {
	const source = "sourceResultDetails"
	inner := details.Member("xdev").Member("inner")
	edits := []rawjson.Value{details, details.Member(source), inner, inner.Member(source)}
	for _, edit := range edits {
		if edit.Member("applied").Truthy() {
			r.value(edit.Member("files"), 0, PathUse)
		}
	}
}

// pathReader reads the paths in the arguments of one call.
type pathReader struct {
	tool, dir string // dir is the directory of relative names in patches; "" for the session's directory
	f         func(string) bool
	decoded   []byte
}

// value reads a value of some use at a depth below the arguments: a string, or those in an object or a list. The members of
// an object have uses of their own. Deeper values than maxArgumentDepth are ignored.
func (r *pathReader) value(v rawjson.Value, depth int, use Use) {
	if v.IsString() {
		r.text(v, use)
		return
	}
	if depth < maxArgumentDepth {
		for m := range v.EachMember {
			own := ArgumentOf(r.tool, m.Name())
			r.value(m.Value, depth+1, own.Use)
		}
	}
	if depth <= maxArgumentDepth {
		for e := range v.EachElement {
			r.value(e, depth+1, use)
		}
	}
}

// text reads a string of some use. Any text may have a patch in it, but for the content of a file.
func (r *pathReader) text(v rawjson.Value, use Use) {
	switch {
	case use == ContentUse, use == DirectoryUse:
	case use == PathsUse && bytes.IndexByte(v, ';') >= 0:
		r.list(v)
	case use == PathUse, use == PathsUse:
		r.path(v)
	case use == PatchUse, bytes.Contains(v, patchBegin):
		body := v[1 : len(v)-1]
		r.decoded = rawjson.AppendDecoded(r.decoded[:0], body)
		eachPatched(r.decoded, use == PatchUse, r.patched)
	}
}

// path reads a path, unless it is longer than MaxPath.
func (r *pathReader) path(v rawjson.Value) {
	if len(v) <= MaxPath+len(`""`) {
		text, _ := v.Text()
		r.f(text)
	}
}

// list reads paths separated by semicolons. A file's name may look like a list.
func (r *pathReader) list(v rawjson.Value) {
	text, _ := v.Text()
	isKnown := false
	for part := range strings.SplitSeq(text, ";") {
		name := strings.TrimSpace(part)
		if name == "" || !fits([]byte(part)) {
			continue
		}
		if r.f(name) {
			isKnown = true
		}
	}
	if !isKnown {
		r.path(v)
	}
}

// patched calls f for the name of a file in a patch, relative names with the directory of the call before them.
func (r *pathReader) patched(name string) {
	_, _, isAbs := names.AbsPath(name)
	isInHome := strings.HasPrefix(name, "~")
	if r.dir != "" && !isAbs && !isInHome {
		name = path.Join(r.dir, name)
	}
	r.f(name)
}
