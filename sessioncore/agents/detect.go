package agents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sessionfs/sessioncore/storage"
)

// Of returns the agent of a directory by the names in it and by a record, or nil. A directory with
// sessions of omp is omp's, whatever else it has, as those can be written.
func Of(dir string) *Agent {
	owner, _ := ownerOf(dir)
	return owner
}

// HasScopes reports whether an agent directory has sessions of omp or pi, by its names of projects.
func HasScopes(dir string) bool { return HasDir(filepath.Join(dir, "sessions"), "-*") }

// maxNames bounds the names read to detect an agent. A larger directory has names of one kind.
const maxNames = 1024

// HasDir reports whether dir is a directory with a path of directories in it that match patterns, one for each level,
// as in filepath.Match. It lists no directory for a name without wildcards.
func HasDir(dir string, patterns ...string) bool {
	if len(patterns) == 0 {
		info, err := os.Stat(dir)
		return err == nil && info.IsDir()
	}
	first := patterns[0]
	rest := patterns[1:]
	hasWildcard := strings.ContainsAny(first, `*?[\`)
	if !hasWildcard {
		return HasDir(filepath.Join(dir, first), rest...)
	}
	for _, name := range namesIn(dir) {
		matches, _ := filepath.Match(first, name)
		if matches && HasDir(filepath.Join(dir, name), rest...) {
			return true
		}
	}
	return false
}

// HasFile reports whether a name in a directory begins with a prefix.
func HasFile(dir, prefix string) bool {
	return slices.ContainsFunc(namesIn(dir), func(name string) bool {
		return strings.HasPrefix(name, prefix)
	})
}

// namesIn returns up to maxNames names in a directory, in no order.
func namesIn(dir string) []string {
	f, err := storage.OpenDir(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxNames) // names read before an error count
	return names
}

var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// IsUUID reports whether an id is a UUID, for Agent.IsID.
func IsUUID(id string) bool { return uuid.MatchString(id) }
