package clients

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Scopes are the names that clients of omp give to the directories of sessions (docs/format.md, Files). They go by the
// canonical paths of working directories: symbolic links are resolved where they can be.
type Scopes struct {
	home, temporary string // canonical
	homeAsGiven     string
}

// ScopesOf returns the names that the clients of a user give.
func ScopesOf(uid uint32) Scopes {
	home := ""
	if int(uid) == os.Geteuid() {
		home = os.Getenv("HOME")
	}
	if home == "" {
		if u, err := user.LookupId(strconv.Itoa(int(uid))); err == nil {
			home = u.HomeDir
		}
	}
	return scopesIn(home, os.TempDir())
}

func scopesIn(home, temporary string) Scopes {
	s := Scopes{homeAsGiven: home, temporary: canonical(temporary)}
	if home != "" {
		s.home = canonical(home)
	}
	return s
}

func canonical(dir string) string {
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return filepath.Clean(dir)
}

// Name returns the name of the directory for the sessions of a working directory, an absolute path.
func (s Scopes) Name(cwd string) string {
	cwd = canonical(cwd)
	if below, ok := within(s.home, cwd); ok {
		return "-" + dashed(below)
	}
	if below, ok := within(s.temporary, cwd); ok {
		return "-tmp" + dashed(strings.TrimSuffix("/"+below, "/"))
	}
	return AbsoluteScope(cwd)
}

// within returns the path below a directory of one that is in it, or is it.
func within(dir, name string) (below string, ok bool) {
	if dir == "" {
		return "", false
	}
	below, err := filepath.Rel(dir, name)
	if err != nil || strings.HasPrefix(below, "..") { // as the clients, also where that begins a name
		return "", false
	}
	if below == "." {
		below = ""
	}
	return below, true
}

func dashed(path string) string {
	return strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(path)
}

// AbsoluteScope returns the name that pi gives to the directory of any working directory, and omp to that of one that is neither in
// the home directory nor in that of temporary files.
func AbsoluteScope(cwd string) string { return "--" + dashed(strings.TrimPrefix(cwd, "/")) + "--" }

// Passing reports whether clients of omp give another name to a directory once they start, or start in cwd.
func (s Scopes) Passing(name, cwd string) bool {
	whole := AbsoluteScope(s.homeAsGiven)
	ofHome := s.homeAsGiven != "" && (name == whole || strings.HasPrefix(name, strings.TrimSuffix(whole, "-")) && strings.HasSuffix(name, "--"))
	return ofHome || name != s.Name(cwd) && name == AbsoluteScope(filepath.Clean(cwd))
}
