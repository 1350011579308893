package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
)

// Names in an agent directory. The generic ones do not distinguish it from other directories by themselves.
var (
	clientMarks  = []string{"agent.db", "history.db", "models.db", "terminal-sessions"}
	genericMarks = []string{"blobs", "archive", "config.yml", "settings.json", "auth.json", "models.yml", "models.json", "keybindings.json"}
)

const (
	// maxSample bounds how many names of a directory are looked at: a store may have any number of them.
	maxSample = 64
	// maxStray is how many unknown names (lost+found, .git) a new agent directory may hold.
	maxStray = 8
)

// checkAgentDir checks that dir, a path with its symlinks resolved, is an agent directory: another directory would be
// mounted without an error and show nothing. It returns a warning if dir may become an agent directory, and an error
// if it cannot. Both name the directory that was probably meant, if there is one.
func checkAgentDir(given, dir string, getenv func(string) string) (warning string, err error) {
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
	names, err := sample(dir)
	if err != nil {
		return "", refuse(exitSource, "SOURCE %s cannot be read: %s", dir, err)
	}
	meant := below(dir, names)
	if meant == "" {
		meant = around(given, dir, holdsSessions(names))
	}
	hint := ""
	if meant != "" {
		hint = "\nProbably meant: " + meant
	} else if usual := mountopts.DefaultSource(getenv); usual != "" && isAgentDir(usual) {
		hint = "\nThe agent directory of this user is " + usual
	}
	switch maybe := len(names) <= maxStray || hasAny(dir, genericMarks); {
	case len(names) == 0:
		return fmt.Sprintf("SOURCE %s is empty; an agent directory holds sessions/, which will show once a client has made it%s", dir, hint), nil
	case meant == "" && holdsSessions(names):
		return "", refuse(exitSource, "SOURCE %s holds session files itself; SOURCE is the directory that holds them in sessions/\n"+
			"Where there is none: mkdir AGENT; ln -s %s AGENT/sessions; sessionfs AGENT MOUNTPOINT", dir, dir)
	case meant != "" && !hasAny(dir, genericMarks), !maybe:
		return "", refuse(exitSource, "SOURCE %s is not an agent directory, which holds sessions/%s", dir, hint)
	}
	return fmt.Sprintf("SOURCE %s has no sessions/, as an agent directory has; it will show once a client has made it%s", dir, hint), nil
}

// below looks for an agent directory where dir is one of its parents, such as ~/.omp, the home directory,
// ~/.operator or ~/.operator/profiles. dir holds names.
func below(dir string, names []string) string {
	candidates := []string{"agent", ".omp/agent", ".pi/agent", ".xcsh/agent"}
	if filepath.Base(dir) == "profiles" {
		candidates = append(candidates, names...)
	}
	profiles, _ := sample(filepath.Join(dir, "profiles")) // most directories have none
	for _, name := range profiles {
		candidates = append(candidates, filepath.Join("profiles", name))
	}
	for _, name := range candidates {
		if path := filepath.Join(dir, name); isAgentDir(path) {
			return path
		}
	}
	return ""
}

// around looks for an agent directory whose sessions/, say, is dir or contains dir. It looks at the path as given too, since
// sessions/ may be a symlink to another disk.
func around(given, dir string, holds bool) string {
	for _, path := range []string{dir, filepath.Clean(given)} {
		for ; path != "/"; path = filepath.Dir(path) {
			parent := filepath.Dir(path)
			switch filepath.Base(path) {
			case "sessions":
				if holds || hasAny(parent, clientMarks) {
					return parent
				}
			case "blobs", "terminal-sessions", "archive":
				if isAgentDir(parent) {
					return parent
				}
			}
		}
	}
	return ""
}

// isAgentDir reports whether dir is certainly an agent directory.
func isAgentDir(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "sessions"))
	return err == nil && info.IsDir() || hasAny(dir, clientMarks)
}

// holdsSessions reports whether one of names is that of a session, or of a directory of sessions, as those of all scope
// directories begin.
func holdsSessions(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return filepath.Ext(name) == ".jsonl" || name[0] == '-' })
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

// sample returns up to maxSample names of a directory, unsorted.
func sample(dir string) ([]string, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY, 0) // opening a FIFO would block
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(maxSample)
	if err == io.EOF {
		err = nil
	}
	return names, err
}
