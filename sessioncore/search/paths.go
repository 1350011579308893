package search

import (
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/names"
)

// paths resolves the paths in a session's calls, and compares them with the searched file.
type paths struct {
	*Touched
	cwd     string // clean, in POSIX form; may be ""
	homes   []string
	windows bool // cwd is of Windows
}

// pathsOf returns the paths of a session with a header. ~ is the home directory above the working
// directory, which may be another machine's, and the user's.
func (t *Touched) pathsOf(header rawjson.Value) *paths {
	cwd := header.Member("cwd")
	if len(cwd) > message.MaxPath {
		return t.pathsIn("")
	}
	text, _ := cwd.Text()
	return t.pathsIn(text)
}

// pathsIn is pathsOf for a working directory, which may be "".
func (t *Touched) pathsIn(cwd string) *paths {
	p := &paths{Touched: t}
	p.cwd, p.windows, _ = names.AbsPath(cwd)
	for _, home := range []string{homeAbove(p.cwd), t.home} {
		clean, _, ok := names.AbsPath(home)
		if ok {
			p.homes = append(p.homes, clean)
		}
	}
	return p
}

// isEverywhere reports whether any call of the session may name the file without its name: the path is
// the root, or the directory of the session or of a user is at or below it.
func (p *paths) isEverywhere() bool {
	return p.needle == nil || slices.ContainsFunc(append(p.homes, p.cwd), p.isBelow)
}

// homeAbove returns the home directory at or above a directory, by its usual names, or "".
func homeAbove(dir string) string {
	at := strings.Split(dir, "/")
	if len(at) > 1 && strings.HasSuffix(at[1], ":") {
		at = at[1:]
	}
	switch {
	case len(at) > 2 && (at[1] == "home" || strings.EqualFold(at[1], "Users")):
		return strings.TrimSuffix(dir, strings.TrimPrefix(strings.Join(at, "/"), strings.Join(at[:3], "/")))
	case len(at) > 1 && at[1] == "root":
		return "/root"
	}
	return ""
}

// fileOf returns the file of a path in a call if it is the searched file or below it, else "". A
// colon separates lines of the file or names in it.
func (p *paths) fileOf(name string) string {
	name = strings.TrimPrefix(name, "file://")
	if name == "" || strings.Contains(name, "://") {
		return ""
	}
	drive := 0
	_, windows, _ := names.AbsPath(name)
	if windows {
		drive = strings.IndexByte(name, ':') + 1
	}
	before, _, ok := strings.Cut(name[drive:], ":")
	if ok && before != "" {
		file := p.below(name[:drive] + before)
		if file != "" {
			return file
		}
	}
	return p.below(name)
}

// isNamed reports whether a path in a call is that of the file or below it.
func (p *paths) isNamed(name string) bool { return p.fileOf(name) != "" }

// below is fileOf for a path without lines.
func (p *paths) below(name string) string {
	for _, file := range p.resolve(name) {
		if p.isBelow(file) {
			return file
		}
	}
	return ""
}

// resolve returns the clean absolute paths that a path in a call may mean.
func (p *paths) resolve(name string) []string {
	referred, hasAt := strings.CutPrefix(name, "@")
	if hasAt && (strings.HasPrefix(referred, "~") || path.IsAbs(referred)) {
		name = referred // models refer to files in this way
	}
	var all []string
	inHome, hasTilde := strings.CutPrefix(name, "~")
	if hasTilde && (inHome == "" || inHome[0] == '/' || inHome[0] == '\\') {
		for _, home := range p.homes {
			all = append(all, path.Join(home, strings.ReplaceAll(inHome, `\`, "/")))
		}
	}
	clean, _, isAbs := names.AbsPath(name)
	switch {
	case isAbs:
		return []string{clean}
	case p.cwd == "" || name == "":
		return all
	case p.windows:
		name = strings.ReplaceAll(name, `\`, "/")
		drive, _, _ := strings.Cut(p.cwd[1:], "/")
		if path.IsAbs(name) && strings.HasSuffix(drive, ":") {
			return []string{path.Join("/", drive, name)}
		}
	}
	return append(all, path.Join(p.cwd, name))
}

// isBelow reports whether a clean path is the file or below it.
func (p *paths) isBelow(clean string) bool {
	if p.Touched.windows {
		clean = strings.ToLower(clean)
	}
	if p.others != nil {
		return path.Base(clean) == path.Base(p.path)
	}
	return isBelow(clean, p.path)
}

// foldedPath returns the clean form of an absolute path, in lower case for Windows, else "".
func foldedPath(name string) string {
	clean, windows, _ := names.AbsPath(name)
	if windows {
		clean = strings.ToLower(clean)
	}
	return clean
}

// isBelow reports whether a directory is dir or below it.
func isBelow(name, dir string) bool {
	return name == dir || dir == "/" && strings.HasPrefix(name, "/") ||
		len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/'
}
