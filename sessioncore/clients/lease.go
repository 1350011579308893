package clients

import (
	"cmp"
	"path/filepath"
	"slices"
	"sync"

	"sessionfs/sessioncore/internal/filelock"
	"sessionfs/sessioncore/storage"
)

// Newer clients hold a lease on the session that they write to, from their first write until they exit: a lock of
// package filelock (docs/format.md, omp after 18.2.3), so there are no stale leases. A client in a container with its
// own network is not seen.

// Leases finds clients that hold the lease of a session. It is safe for concurrent use.
//
// A query costs a socket and a connect(2) for each directory in which the lease may be. It sends nothing; the kernel answers.
type Leases struct{ dirs, roots []string }

// NewLeases returns a Leases for the given directories of leases. They need not exist: on Linux a lease is not a
// file.
func NewLeases(dirs ...string) *Leases { return &Leases{dirs: dirs} }

// Beside makes l look beside the session files too, where 18.4.9 to 18.4.12 had their leases. The roots are the paths
// under which clients may know the storage of the sessions. It is called before l is used.
func (l *Leases) Beside(roots ...string) *Leases {
	l.roots = roots
	return l
}

// AgentDirs returns the absolute paths of agent directories: those given that are not empty, and those that a client
// would use with our environment.
func AgentDirs(getenv func(string) string, given ...string) (dirs []string) {
	add := func(dir string) {
		if path, err := filepath.Abs(dir); dir != "" && err == nil && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for _, dir := range given {
		add(dir)
	}
	add(getenv("PI_CODING_AGENT_DIR"))
	if root := configRoot(getenv); root != "" {
		add(filepath.Join(root, agentName))
	}
	if data := getenv("XDG_DATA_HOME"); data != "" {
		add(filepath.Join(data, xdgName))
	}
	return dirs
}

// agentName is the agent directory in the client's configuration, xdgName the client's directory in those of XDG.
const agentName, xdgName = "agent", "omp"

// configRoot returns the client's configuration directory, "" if there is no home.
func configRoot(getenv func(string) string) string {
	home := getenv("HOME")
	if home == "" {
		return ""
	}
	return filepath.Join(home, cmp.Or(getenv("PI_CONFIG_DIR"), ".omp"))
}

// LeaseDirs returns the directories of leases that clients of an agent directory may use, as absolute paths without
// duplicates: the one beside each of the directory's paths in sources, and those that a client derives from its
// environment, which is assumed to be like ours.
func LeaseDirs(getenv func(string) string, sources ...string) (dirs []string) {
	add := func(dir string) {
		path, err := filepath.Abs(filepath.Join(dir, "run", "session-owners"))
		if err == nil && !slices.Contains(dirs, path) {
			dirs = append(dirs, path)
		}
	}
	for _, source := range sources {
		if filepath.Base(source) == agentName {
			add(filepath.Dir(source))
		}
	}
	if root := configRoot(getenv); root != "" {
		add(root)
	}
	if state := getenv("XDG_STATE_HOME"); state != "" {
		add(filepath.Join(state, xdgName))
	}
	return dirs
}

// On returns the client that holds the lease of the session file, or nil if there is none. name is that of the lease.
func (l *Leases) On(file, name string) *LiveError {
	path := l.heldOf(file, name)
	if path == "" {
		return nil
	}
	find := sync.OnceValue(func() int { return filelock.Holder(path) })
	return &LiveError{Session: file, Sign: SignLease, find: find}
}

// heldOf returns the path of a lease of the session that is held, "" if there is none.
func (l *Leases) heldOf(file, name string) string {
	for _, dir := range l.dirs {
		if path := filepath.Join(dir, name+".lock"); filelock.Held(path) {
			return path
		}
	}
	dir, base := storage.Dir(file), filepath.Base(file)
	for _, root := range l.roots {
		if path := filepath.Join(root, dir, "."+base+".owner.lock"); filelock.Held(path) {
			return path
		}
	}
	return ""
}
