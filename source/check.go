package source

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
)

// Prepare finds SOURCE where it is not given, makes it absolute, with its symlinks resolved, and
// unpacks the sample store where that is SOURCE, or refuses it. A database stays as it is given;
// opening it tells whether it can be used. Files of options become absolute too. Warnings go to stderr.
func (p *Place) Prepare(stderr io.Writer) (err error) {
	if p.lone != nil { // it was made ready
		return nil
	}
	isDefault := p.Source == ""
	if p.Demo {
		err = p.unpackDemo()
	} else {
		setUsual(&p.Options, os.Getenv)
		if p.Source == "" {
			err = fs.Refuse(fs.ErrUsage, "SOURCE is not given, and neither PI_CODING_AGENT_DIR nor HOME is set")
		}
	}
	if err != nil {
		return err
	}
	err = p.CheckSource()
	if err != nil {
		return fs.Refuse(fs.ErrUsage, "%s", err)
	}
	files := []*string{&p.RedactRules, &p.Blobs}
	if p.Prices != mountopts.NoPrices {
		files = append(files, &p.Prices)
	}
	for _, file := range files {
		if *file == "" {
			continue
		}
		*file, err = fs.Absolute(*file)
		if err != nil {
			return err
		}
	}
	switch {
	case p.Demo, mountopts.IsDatabase(p.Source):
		return nil
	case p.Source == mountopts.All:
		return resolveAgents(&p.Options, stderr)
	}
	p.Source, p.SourceAs, err = resolveDir(p.Source, isDefault, stderr)
	return err
}

// resolveDir returns an agent directory absolute, once with its symlinks resolved and once as it is given, or
// refuses it. Of one that is gone it returns the directory of its kept sessions. It warns on stderr of one that has no
// sessions yet. isDefault says that the user has not named it.
func resolveDir(given string, isDefault bool, stderr io.Writer) (resolved, as string, err error) {
	hint := ""
	if isDefault {
		hint = "\nIt is the default; give SOURCE if the agent directory is elsewhere, " +
			"or try 'sessionfs --demo MOUNTPOINT'."
	}
	abs, err := fs.Absolute(given)
	if err != nil {
		return "", "", fs.Refuse(fs.ErrSource, "SOURCE %s cannot be resolved: %s", given, err)
	}
	resolved, err = filepath.EvalSymlinks(abs)
	if errors.Is(err, iofs.ErrNotExist) {
		for _, agent := range agents.All() {
			kept := fs.KeptOf(agent.Name, abs)
			if kept != "" {
				return resolveDir(kept, isDefault, stderr)
			}
		}
		return "", "", fs.Refuse(fs.ErrSource, "SOURCE %s does not exist%s", abs, hint)
	}
	if err != nil {
		return "", "", fs.Refuse(fs.ErrSource, "SOURCE %s cannot be used: %s%s", abs, err, hint)
	}
	items, err := os.ReadDir(resolved) // on some network file systems a successful open means nothing
	if err == nil {
		_, err = os.Lstat(resolved + "/.") // listing needs r; opening a file needs x
	}
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return "", "", fs.Refuse(fs.ErrSource, "SOURCE %s is not a directory; it must be the agent directory, "+
			"which holds sessions/%s", resolved, hint)
	case err != nil:
		return "", "", fs.Refuse(fs.ErrSource, "SOURCE %s cannot be read by user %d: %s%s",
			resolved, os.Geteuid(), err, hint)
	}
	warning, err := checkAgentDir(abs, resolved, items, os.Getenv)
	if warning != "" {
		fmt.Fprintln(stderr, "sessionfs: warning:", names.VisibleExcept(warning, "\n"))
	}
	return resolved, filepath.Clean(abs), err
}

// resolveAgents sets the agents of this user in o. Those that cannot be opened are left out, with a warning on stderr;
// if none can be, it returns the error of the first.
func resolveAgents(o *mountopts.Options, stderr io.Writer) (err error) {
	dirs := AgentDirs(os.Getenv)
	if len(dirs) == 0 {
		return fs.Refuse(fs.ErrSource, "no agent of this user has sessions: neither ~/.omp/agent nor %s is there",
			agents.OneOf(OtherHomes()))
	}
	for _, a := range dirs {
		source, as, refused := resolveDir(a.Source, true, stderr)
		if refused != nil {
			if err == nil {
				err = refused
			}
			reason, _, _ := strings.Cut(refused.Error(), "\n")
			o.LeftOut = append(o.LeftOut, a.Name+" is left out: "+reason)
			continue
		}
		a.Source = source
		a.SourceAs = as
		o.Agents = append(o.Agents, a)
	}
	if len(o.Agents) == 0 {
		return err
	}
	for _, out := range o.LeftOut {
		fmt.Fprintln(stderr, "sessionfs: warning:", names.Visible(out))
	}
	return nil
}

// IsDir reports whether a path leads to a directory.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Names in an agent directory. The generic ones do not distinguish it from other directories by
// themselves.
var (
	clientMarks  = []string{"agent.db", "history.db", "models.db", "terminal-sessions"}
	genericMarks = []string{"blobs", "archive", "config.yml", "settings.json", "auth.json", "models.yml", "models.json",
		"keybindings.json"}
)

// checkAgentDir checks that dir, a path with its symlinks resolved that holds items, is an agent
// directory: another directory would be mounted without an error and show nothing. It returns a
// warning if dir may become an agent directory, and an error if it cannot. Both name the directory
// that was probably meant, if there is one.
func checkAgentDir(given, dir string, items []iofs.DirEntry, getenv func(string) string) (warning string, err error) {
	unread := Unread(dir)
	if unread > 0 {
		return "", fs.Refuse(fs.ErrUnread, "SOURCE %s is not read: no agent that is known wrote %s in it%s",
			dir, countOf(unread, "session file"), unreadTitle(dir))
	}
	if agents.Of(dir) != nil {
		return "", nil
	}
	sessions := filepath.Join(dir, "sessions")
	info, err := os.Stat(sessions)
	switch {
	case err == nil && info.IsDir():
		return "", nil
	case err == nil:
		return "", fs.Refuse(fs.ErrSource, "SOURCE %s cannot be an agent directory: %s is not a directory", dir, sessions)
	}
	target, err := os.Readlink(sessions)
	if err == nil {
		return fmt.Sprintf("SOURCE %s shows no sessions now: %s is a symlink to %s, which cannot be reached",
			dir, sessions, target), nil
	}
	if hasAny(dir, clientMarks) || IsDir(fs.PiSessions(given, dir, getenv)) {
		return "", nil // a client makes sessions/ for its first session
	}
	hint := otherDirHint(given, dir, items, getenv)
	mayBecome := len(items) == 0 || hasAny(dir, genericMarks)
	if mayBecome {
		return fmt.Sprintf("SOURCE %s has no sessions/, as an agent directory has; it will show once a client has made it%s", dir, hint), nil
	}
	if hint == "" {
		hint = "\nIf it is to be one: mkdir " + dir + "/sessions. If it holds session files itself: " +
			"mkdir AGENT; ln -s " + dir + " AGENT/sessions"
	}
	return "", fs.Refuse(fs.ErrSource, "SOURCE %s is not an agent directory, which holds sessions/%s%s",
		dir, unreadTitle(dir), hint)
}

// otherDirHint returns a line about the directory that was probably meant in place of dir, "" if there is none: a
// mount in it, an agent directory around it or in it, or else the usual one of omp.
func otherDirHint(given, dir string, items []iofs.DirEntry, getenv func(string) string) string {
	mount := mountIn(dir, items)
	if mount != "" {
		return "\n" + mount + " is a mount of sessionfs already; to list its sessions, type: ls " + mount + "/recent"
	}
	meant := meantBy(given, dir, items)
	if meant != "" {
		return "\nProbably meant: " + meant
	}
	usual := Usual("omp", getenv).Source
	if usual != "" && isAgentDir(usual) {
		return "\nThe agent directory of this user is " + usual
	}
	return ""
}

// Unread counts the session files in a directory if no known agent wrote them, and returns 0 for an
// agent directory. A directory with databases of omp's client is its own.
func Unread(dir string) int {
	if hasAny(dir, clientMarks) {
		return 0
	}
	return agents.Unread(dir)
}

// unreadTitle returns the end of a sentence that names the agent of a directory that is not read.
func unreadTitle(dir string) string {
	title := agents.TitleOfUnread(dir)
	if title != "" {
		return "; by its name the directory is that of " + title + ", which is not read yet"
	}
	return ""
}

// countOf returns a number of things for people.
func countOf(n int, thing string) string {
	if n == 1 {
		return "the 1 " + thing
	}
	return fmt.Sprintf("the %d %ss", n, thing)
}

// mountIn returns the mount of this program in a directory that holds items, "" if there is none.
func mountIn(dir string, items []iofs.DirEntry) string {
	for _, it := range items {
		at := filepath.Join(dir, it.Name())
		e, ok := fs.MountAt(at)
		if ok && e.IsSessionfs() {
			return at
		}
	}
	return ""
}

// meantBy returns the agent directory that somebody may have meant by dir, a directory with items, or "":
//
//	~/.omp/agent/sessions, or a directory in it    ~/.omp/agent
//	~/.omp, ~                                      ~/.omp/agent
//	~/.operator, ~/.operator/profiles              the first of the profiles
//
// It looks at the path as given too, since sessions/ may be a symlink to another disk.
func meantBy(given, dir string, items []iofs.DirEntry) string {
	for _, path := range []string{dir, filepath.Clean(given)} {
		for ; path != "/"; path = filepath.Dir(path) {
			parent := filepath.Dir(path)
			if isAgentDir(parent) || agents.Of(parent) != nil {
				return parent
			}
		}
	}
	for _, item := range items {
		path := filepath.Join(dir, item.Name())
		if isAgentDir(path) {
			return path
		}
	}
	for _, pattern := range []string{".*/agent", "profiles/*"} {
		paths, _ := filepath.Glob(filepath.Join(dir, pattern))
		i := slices.IndexFunc(paths, isAgentDir)
		if i >= 0 {
			return paths[i]
		}
	}
	return ""
}

// isAgentDir reports whether dir is certainly an agent directory.
func isAgentDir(dir string) bool {
	return IsDir(filepath.Join(dir, "sessions")) || hasAny(dir, clientMarks)
}

// hasAny reports whether one of names is in dir.
func hasAny(dir string, names []string) bool {
	for _, name := range names {
		_, err := os.Lstat(filepath.Join(dir, name))
		if err == nil {
			return true
		}
	}
	return false
}
