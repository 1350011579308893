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

// homeAbove returns the home directory at or above a directory, by its usual names, or "": /home/NAME,
// /Users/NAME, /C:/Users/NAME or /root.
func homeAbove(dir string) string {
	parts := strings.Split(dir, "/") // the first one is empty
	users := 1
	if len(parts) > 1 && strings.HasSuffix(parts[1], ":") {
		users = 2
	}
	if len(parts) <= users {
		return ""
	}
	isUsers := parts[users] == "home" || strings.EqualFold(parts[users], "Users")
	if isUsers && len(parts) > users+1 {
		return strings.Join(parts[:users+2], "/")
	}
	if parts[users] == "root" {
		return "/root"
	}
	return ""
}

// fileOf returns the clean path of a name in a call if it is the searched file or below it, else "". Behind a
// colon a name may have the numbers of lines, or names in the file.
func (p *paths) fileOf(name string) string {
	name = strings.TrimPrefix(name, "file://")
	if name == "" || strings.Contains(name, "://") {
		return ""
	}
	drive := 0 // the length of a drive of Windows: its colon does not count
	_, windows, _ := names.AbsPath(name)
	if windows {
		drive = strings.IndexByte(name, ':') + 1
	}
	before, _, hasColon := strings.Cut(name[drive:], ":")
	if hasColon && before != "" {
		file := p.below(name[:drive] + before)
		if file != "" {
			return file
		}
	}
	return p.below(name)
}

// isNamed reports whether a path in a call is the file's, or below it.
func (p *paths) isNamed(name string) bool { return p.fileOf(name) != "" }

// below is fileOf for a path without lines: of its meanings the first one that is at or below the file, or "".
func (p *paths) below(name string) string {
	for _, file := range p.resolve(name) {
		if p.isBelow(file) {
			return file
		}
	}
	return ""
}

// resolve returns the clean absolute paths that a path in a call may mean: in the session's directory, and for
// one with ~ in each home directory. It is nil if none is known.
func (p *paths) resolve(name string) []string {
	referred, hasAt := strings.CutPrefix(name, "@")
	isReference := strings.HasPrefix(referred, "~") || path.IsAbs(referred)
	if hasAt && isReference {
		name = referred // models refer to files in this way
	}
	clean, _, isAbs := names.AbsPath(name)
	if isAbs {
		return []string{clean}
	}
	all := p.inHomes(name)
	if p.cwd == "" || name == "" {
		return all
	}
	if p.windows {
		name = strings.ReplaceAll(name, `\`, "/")
		drive, _, _ := strings.Cut(p.cwd[1:], "/")
		if path.IsAbs(name) && strings.HasSuffix(drive, ":") {
			return []string{path.Join("/", drive, name)}
		}
	}
	return append(all, path.Join(p.cwd, name))
}

// inHomes returns a path such as ~/a/b in each home directory, none for other paths.
func (p *paths) inHomes(name string) (all []string) {
	inHome, hasTilde := strings.CutPrefix(name, "~")
	if !hasTilde {
		return nil
	}
	inHome = strings.ReplaceAll(inHome, `\`, "/")
	isOfOther := inHome != "" && inHome[0] != '/' // as ~user
	if isOfOther {
		return nil
	}
	for _, home := range p.homes {
		all = append(all, path.Join(home, inHome))
	}
	return all
}

// isBelow reports whether a clean path is the file or below it; in a search for files of that name anywhere,
// whether it has the name.
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

// isBelow reports whether a name is dir, or a path below it. Both are clean.
func isBelow(name, dir string) bool {
	if name == dir {
		return true
	}
	if dir == "/" {
		return strings.HasPrefix(name, "/")
	}
	rest, isPrefix := strings.CutPrefix(name, dir)
	return isPrefix && rest[0] == '/'
}
