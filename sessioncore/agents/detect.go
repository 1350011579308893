package agents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Of returns the agent to which a directory of the machine belongs by the names in it, nil for none. Whatever else is there,
// one with sessions of omp, which can be written, is omp's.
func Of(dir string) *Agent {
	if HasScopes(dir) {
		return nil
	}
	if i := slices.IndexFunc(registered, func(a *Agent) bool { return a.Detect(dir) }); i >= 0 {
		return registered[i]
	}
	return nil
}

// HasScopes reports whether an agent directory has sessions of omp or pi, by the names of the directories with these.
func HasScopes(dir string) bool { return HasDir(filepath.Join(dir, "sessions"), "-*") }

// maxNames is how many names of a directory are read to detect its agent. One that has more has them of one kind.
const maxNames = 1024

// HasDir reports whether dir is a directory in which there is one, at each level, whose name matches the next of patterns.
func HasDir(dir string, patterns ...string) bool {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || len(patterns) == 0 {
		return err == nil && info.IsDir()
	}
	return slices.ContainsFunc(namesIn(dir), func(name string) bool {
		matches, _ := filepath.Match(patterns[0], name)
		return matches && HasDir(filepath.Join(dir, name), patterns[1:]...)
	})
}

// HasFile reports whether a name in a directory begins with a prefix.
func HasFile(dir, prefix string) bool {
	return slices.ContainsFunc(namesIn(dir), func(name string) bool { return strings.HasPrefix(name, prefix) })
}

// namesIn returns up to maxNames names in a directory, in no order.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
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
