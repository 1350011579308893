package clients

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Scopes names the directories of sessions as clients of omp do (docs/format.md, Files): by the
// canonical paths of working directories, with links resolved where possible.
type Scopes struct {
	home, temporary string // canonical
	rawHome         string
}

// ScopesOf returns the Scopes of a user's clients. A user without a known home has none in it.
func ScopesOf(uid uint32) Scopes {
	home := ""
	if int(uid) == os.Geteuid() {
		home = os.Getenv("HOME")
	}
	if home == "" {
		id := strconv.Itoa(int(uid))
		account, err := user.LookupId(id)
		if err == nil {
			home = account.HomeDir
		}
	}
	return scopesIn(home, os.TempDir())
}

// scopesIn returns the Scopes of a home and a temporary directory.
func scopesIn(home, temporary string) Scopes {
	s := Scopes{rawHome: home, temporary: canonical(temporary)}
	if home != "" {
		s.home = canonical(home)
	}
	return s
}

// canonical returns the path of a directory without links, as far as it can be resolved.
func canonical(dir string) string {
	resolved, err := filepath.EvalSymlinks(dir)
	if err == nil {
		return resolved
	}
	return filepath.Clean(dir)
}

// Name returns the name of the directory for the sessions of a working directory, an absolute path,
// also of Windows.
func (s Scopes) Name(cwd string) string {
	if !filepath.IsAbs(cwd) { // of another system
		return AbsoluteScope(cwd)
	}
	cwd = canonical(cwd)
	below, isInHome := within(s.home, cwd)
	if isInHome {
		return "-" + dashed(below)
	}
	below, isTemporary := within(s.temporary, cwd)
	if isTemporary {
		return "-tmp" + dashed(strings.TrimSuffix("/"+below, "/"))
	}
	return AbsoluteScope(cwd)
}

// within returns the path of name below dir; ok is false if name is outside.
func within(dir, name string) (below string, ok bool) {
	if dir == "" {
		return "", false
	}
	below, err := filepath.Rel(dir, name)
	if err != nil || strings.HasPrefix(below, "..") { // like the clients, also for a name such as "..x"
		return "", false
	}
	if below == "." {
		below = ""
	}
	return below, true
}

// dashed returns a path with hyphens in the place of separators, also those of Windows.
func dashed(path string) string {
	return strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(path)
}

// AbsoluteScope returns pi's directory name for a working directory, and omp's for one outside the
// home and temporary directories.
func AbsoluteScope(cwd string) string {
	if strings.HasPrefix(cwd, "/") || strings.HasPrefix(cwd, `\`) {
		cwd = cwd[1:]
	}
	return "--" + dashed(cwd) + "--"
}

// Passing reports whether clients of omp rename the directory called name: when any of them starts, if it has
// the old form of a name for a directory in the home, or when one starts in cwd.
func (s Scopes) Passing(name, cwd string) bool {
	if s.rawHome != "" {
		homeScope := AbsoluteScope(s.rawHome)
		prefix := strings.TrimSuffix(homeScope, "-") // the other hyphen is the separator below the home
		isBelow := strings.HasPrefix(name, prefix) && strings.HasSuffix(name, "--")
		if isBelow || name == homeScope {
			return true
		}
	}
	oldName := AbsoluteScope(filepath.Clean(cwd))
	return name == oldName && name != s.Name(cwd)
}
