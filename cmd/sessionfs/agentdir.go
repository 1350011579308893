package main

import (
	"cmp"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"

	"sessionfs/fs"
)

// Names in an agent directory. The generic ones do not distinguish it from other directories by themselves.
var (
	clientMarks  = []string{"agent.db", "history.db", "models.db", "terminal-sessions"}
	genericMarks = []string{"blobs", "archive", "config.yml", "settings.json", "auth.json", "models.yml", "models.json", "keybindings.json"}
)

// checkAgentDir checks that dir, a path with its symlinks resolved that holds items, is an agent directory: another directory would be
// mounted without an error and show nothing. It returns a warning if dir may become an agent directory, and an error
// if it cannot. Both name the directory that was probably meant, if there is one.
func checkAgentDir(given, dir string, items []iofs.DirEntry, getenv func(string) string) (warning string, err error) {
	sessions := filepath.Join(dir, "sessions")
	switch info, err := os.Stat(sessions); {
	case err == nil && info.IsDir():
		return "", nil
	case err == nil:
		return "", refuse(exitSource, "SOURCE %s cannot be an agent directory: %s is not a directory", dir, sessions)
	}
	if target, err := os.Readlink(sessions); err == nil {
		return fmt.Sprintf("SOURCE %s shows no sessions now: %s is a symlink to %s, which cannot be reached", dir, sessions, target), nil
	}
	if hasAny(dir, clientMarks) || isDir(fs.PiSessions(given, dir, getenv)) {
		return "", nil // a client makes sessions/ for its first session
	}
	hint := ""
	if meant := meantBy(given, dir, items); meant != "" {
		hint = "\nProbably meant: " + meant
	} else if usual := usualSource(getenv); usual != "" && isAgentDir(usual) {
		hint = "\nThe agent directory of this user is " + usual
	}
	if len(items) > 0 && !hasAny(dir, genericMarks) {
		hint = cmp.Or(hint, "\nIf it is to be one: mkdir "+dir+"/sessions. If it holds session files itself: mkdir AGENT; ln -s "+dir+" AGENT/sessions")
		return "", refuse(exitSource, "SOURCE %s is not an agent directory, which holds sessions/%s", dir, hint)
	}
	return fmt.Sprintf("SOURCE %s has no sessions/, as an agent directory has; it will show once a client has made it%s", dir, hint), nil
}

// meantBy looks for an agent directory in which dir is, such as its sessions/, or which is in dir, which holds items: in
// ~/.omp, the home directory, ~/.operator or ~/.operator/profiles. It looks at the path as given too, since sessions/ may be
// a symlink to another disk.
func meantBy(given, dir string, items []iofs.DirEntry) string {
	for _, path := range []string{dir, filepath.Clean(given)} {
		for ; path != "/"; path = filepath.Dir(path) {
			if parent := filepath.Dir(path); isAgentDir(parent) {
				return parent
			}
		}
	}
	for _, it := range items {
		if path := filepath.Join(dir, it.Name()); isAgentDir(path) {
			return path
		}
	}
	for _, pattern := range []string{".*/agent", "profiles/*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		if i := slices.IndexFunc(paths, isAgentDir); i >= 0 {
			return paths[i]
		}
	}
	return ""
}

// isAgentDir reports whether dir is certainly an agent directory.
func isAgentDir(dir string) bool {
	return isDir(filepath.Join(dir, "sessions")) || hasAny(dir, clientMarks)
}

// hasAny reports whether one of names is in dir.
func hasAny(dir string, names []string) bool {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}
