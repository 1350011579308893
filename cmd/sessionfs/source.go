package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/testdata"
)

// resolveSource finds SOURCE where it is not given, makes it absolute, with its symlinks resolved, and unpacks the sample
// store where that is SOURCE, or refuses it. A database stays as it is given; opening it tells whether it can be used.
// Callers must call remove in any case.
func resolveSource(o *mountopts.Options, stderr io.Writer) (remove func(), err error) {
	remove = func() {}
	isDefault := o.Source == ""
	if o.Demo {
		dir, agents, err := unpackDemo()
		if err != nil {
			return remove, err
		}
		o.Source, o.Agents, o.FSName = mountopts.All, agents, cmp.Or(o.FSName, "demo")
		remove = func() { os.RemoveAll(dir) }
	} else if placeSource(o, os.Getenv); o.Source == "" {
		return remove, refuse(exitUsage, "SOURCE is not given, and neither PI_CODING_AGENT_DIR nor HOME is set")
	}
	if err := o.CheckSource(); err != nil {
		return remove, refuse(exitUsage, "%s", err)
	}
	for _, file := range []*string{&o.Prices, &o.RedactRules} {
		if *file == "" || file == &o.Prices && *file == mountopts.NoPrices {
			continue
		}
		if *file, err = absolute(*file); err != nil {
			return remove, err
		}
	}
	if o.Source == mountopts.All {
		if !o.Demo {
			err = resolveAgents(o, stderr)
		}
		return remove, err
	}
	if mountopts.IsDatabase(o.Source) {
		if o.Blobs != "" {
			o.Blobs, err = absolute(o.Blobs)
		}
		return remove, err
	}
	o.Source, o.SourceAs, err = resolveDir(o.Source, isDefault, stderr)
	return remove, err
}

// resolveDir returns an agent directory absolute, with its symlinks resolved and as it is given, or refuses it.
func resolveDir(given string, isDefault bool, stderr io.Writer) (resolved, as string, err error) {
	resolved, warning, err := checkSource(given, isDefault)
	if err != nil {
		return "", "", err
	}
	if warning != "" {
		fmt.Fprintln(stderr, "sessionfs: warning:", visibleLines(warning))
	}
	as, _ = filepath.Abs(given) // checkSource has refused what has no absolute path
	return resolved, as, nil
}

// resolveAgents finds the agents of this user. Those that cannot be opened are left out, unless all
// are.
func resolveAgents(o *mountopts.Options, stderr io.Writer) (err error) {
	dirs := agentDirs(os.Getenv)
	if len(dirs) == 0 {
		return refuse(exitSource, "no agent of this user has sessions: neither ~/.omp/agent nor %s is there", agents.OneOf(otherHomes()))
	}
	for _, a := range dirs {
		source, as, refused := resolveDir(a.Source, true, stderr)
		if refused != nil {
			err = cmp.Or(err, refused)
			reason, _, _ := strings.Cut(refused.Error(), "\n")
			o.LeftOut = append(o.LeftOut, a.Name+" is left out: "+reason)
			continue
		}
		a.Source, a.SourceAs = source, as
		o.Agents = append(o.Agents, a)
	}
	if len(o.Agents) == 0 {
		return err
	}
	for _, out := range o.LeftOut {
		fmt.Fprintln(stderr, "sessionfs: warning:", visible(out))
	}
	return nil
}

// agentDirs returns the agent directories of this user that are there.
func agentDirs(getenv func(string) string) (dirs []mountopts.AgentDir) {
	add := func(name, dir, state string) {
		same := func(a mountopts.AgentDir) bool { return a.Name == name || isSame(a.Source, dir) }
		if (isDir(dir) || isClosed(dir)) && !slices.ContainsFunc(dirs, same) {
			dirs = append(dirs, mountopts.AgentDir{Name: name, Source: dir, State: state})
		}
	}
	told, home := getenv("PI_CODING_AGENT_DIR"), getenv("HOME")
	if told != "" && fs.IsPi(told) { // both obey it, and it is of one of them
		add("pi", told, "")
		told = ""
	}
	var omp mountopts.Options
	placeSource(&omp, func(name string) string {
		if name == "PI_CODING_AGENT_DIR" {
			return told
		}
		return getenv(name)
	})
	if !fs.IsPi(omp.Source) && agents.Of(omp.Source) == nil {
		add("omp", omp.Source, omp.State)
	}
	if home != "" {
		add("pi", filepath.Join(home, ".pi", "agent"), "")
	}
	for _, agent := range agents.All() {
		if dir := agent.Home(getenv); dir != "" && (agents.Of(dir) == agent || isClosed(dir)) {
			add(agent.Name, dir, "")
		}
	}
	slices.SortStableFunc(dirs, func(a, b mountopts.AgentDir) int {
		return cmp.Compare(slices.Index(agentOrder(), a.Name), slices.Index(agentOrder(), b.Name))
	})
	return dirs
}

// agentOrder returns the names of the agents in the order in which one is chosen that is not named.
func agentOrder() []string {
	order := []string{"omp", "pi"}
	for _, agent := range agents.All() {
		order = append(order, agent.Name)
	}
	return order
}

// usualDir returns where the directory of an agent is.
func usualDir(name string, getenv func(string) string) string {
	if agent := agents.Find(name); agent != nil {
		return agent.Home(getenv)
	}
	if name == "pi" {
		return filepath.Join(getenv("HOME"), ".pi", "agent")
	}
	return usualSource(getenv)
}

// checkSource returns SOURCE absolute and with its symlinks resolved, and a warning for the user or "", or refuses
// it.
func checkSource(source string, isDefault bool) (path, warning string, err error) {
	hint := ""
	if isDefault {
		hint = "\nIt is the default; give SOURCE if the agent directory is elsewhere, or try 'sessionfs --demo MOUNTPOINT'."
	}
	abs, err := absolute(source)
	if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be resolved: %s", source, err)
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", "", refuse(exitSource, "SOURCE %s does not exist%s", abs, hint)
	}
	if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be used: %s%s", abs, err, hint)
	}
	names, err := os.ReadDir(resolved) // on some network file systems a successful open means nothing
	if err == nil {
		_, err = os.Lstat(resolved + "/.") // listing needs r; opening what is listed needs x
	}
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return "", "", refuse(exitSource, "SOURCE %s is not a directory; it must be the agent directory, which holds sessions/%s", resolved, hint)
	case err != nil:
		return "", "", refuse(exitSource, "SOURCE %s cannot be read by user %d: %s%s", resolved, os.Geteuid(), err, hint)
	}
	warning, err = checkAgentDir(abs, resolved, names, os.Getenv)
	return resolved, warning, err
}

// absolute puts the working directory before a relative path. Unlike filepath.Abs it keeps "..", which after a
// symlink does not lead back.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	wd, err := os.Getwd()
	return wd + "/" + path, err
}

// usualSource returns the agent directory that the client itself would use if it did not follow the XDG Base Directory
// Specification, or "" if that is unknown.
func usualSource(getenv func(string) string) string {
	if home := getenv("HOME"); home != "" {
		return cmp.Or(getenv("PI_CODING_AGENT_DIR"), filepath.Join(home, ".omp", "agent"))
	}
	return getenv("PI_CODING_AGENT_DIR")
}

// placeSource finds SOURCE if it is not given, and the breadcrumbs if SOURCE is the client's default. A client that was told
// to follow the specification has the parts of its agent directory in two places (docs/format.md, Files): sessions, blobs
// and databases in $XDG_DATA_HOME/omp, the breadcrumbs of terminals in $XDG_STATE_HOME/omp. It uses each of them as soon as
// it exists. Without any of omp's, pi's agent directory is SOURCE, and without that Claude Code's, or Codex's.
func placeSource(o *mountopts.Options, getenv func(string) string) {
	usual, given := usualSource(getenv), o.Source
	o.Source = cmp.Or(given, usual)
	if getenv("PI_CODING_AGENT_DIR") != "" || usual == "" {
		return
	}
	data, state := xdgDir(getenv, "XDG_DATA_HOME"), xdgDir(getenv, "XDG_STATE_HOME")
	if given == "" {
		pi := filepath.Join(getenv("HOME"), ".pi", "agent")
		switch {
		case data != "":
			o.Source = data
		case isDir(usual):
		case isDir(pi):
			o.Source = pi
		default:
			for _, agent := range agents.All() {
				if dir := agent.Home(getenv); o.Source == usual && agents.Of(dir) == agent {
					o.Source = dir
				}
			}
		}
	}
	if !isSame(o.Source, cmp.Or(data, usual)) {
		return // another agent directory is whole
	}
	if o.State = state; state == "" && data != "" {
		o.State = usual
	}
}

// xdgDir returns the client's directory below the one that an environment variable names, or "" if there is none.
func xdgDir(getenv func(string) string, variable string) string {
	dir := filepath.Join(getenv(variable), "omp")
	if !filepath.IsAbs(dir) || !isDir(dir) {
		return ""
	}
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isClosed reports whether a directory is there, or may be, and cannot be read.
func isClosed(path string) bool {
	f, err := os.Open(path)
	if err == nil {
		_, err = f.Readdirnames(1)
		_ = f.Close()
	}
	return err != nil && err != io.EOF && !errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR)
}

// isSame reports whether two paths lead to the same directory.
func isSame(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

// Names in an agent directory. The generic ones do not distinguish it from other directories by themselves.
var (
	clientMarks  = []string{"agent.db", "history.db", "models.db", "terminal-sessions"}
	genericMarks = []string{"blobs", "archive", "config.yml", "settings.json", "auth.json", "models.yml", "models.json", "keybindings.json"}
)

// checkAgentDir checks that dir, a path with its symlinks resolved that holds items, is an agent directory: another directory would be
// mounted without an error and show nothing. It returns a warning if dir may become an agent directory, and an error
// if it cannot. Both name the directory that was probably meant, if there is one.
func checkAgentDir(given, dir string, items []iofs.DirEntry, getenv func(string) string) (warning string, err error) {
	if agents.Of(dir) != nil {
		return "", nil
	}
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

// unpackDemo writes the built-in sample stores into a private directory and returns its path.
func unpackDemo() (dir string, dirs []mountopts.AgentDir, err error) {
	if dir, err = os.MkdirTemp("", "sessionfs-demo-"); err != nil { // mode 0700
		return "", nil, refuse(exitSource, "the sample store cannot be unpacked: %s", err)
	}
	for i, name := range agentOrder() {
		store := testdata.DemoOf(name)
		if i == 0 {
			store = testdata.Demo()
		}
		if store == nil {
			continue
		}
		at := filepath.Join(dir, name)
		err := os.Mkdir(at, 0o700)
		if err == nil {
			err = unpack(store, at)
		}
		if err != nil {
			os.RemoveAll(dir)
			return "", nil, refuse(exitSource, "the sample store cannot be unpacked to %s: %s", dir, err)
		}
		dirs = append(dirs, mountopts.AgentDir{Name: name, Source: at, SourceAs: at})
	}
	return dir, dirs, nil
}

// unpack copies src to dir: directories with mode 0700, files with 0600. The modification time of a session is the
// time of its last entry, so that ls -t lists the newest one first.
func unpack(src iofs.FS, dir string) error {
	return iofs.WalkDir(src, ".", func(name string, d iofs.DirEntry, err error) error {
		target := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case d.IsDir():
			return os.Mkdir(target, 0o700)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is neither a file nor a directory", name)
		}
		data, err := iofs.ReadFile(src, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(target, data, 0o600); err != nil {
			return err
		}
		if r, err := gzip.NewReader(bytes.NewReader(data)); err == nil { // an archived session
			if data, err = io.ReadAll(r); err != nil {
				return err
			}
		}
		if written, ok := lastWritten(data); ok {
			return os.Chtimes(target, written, written)
		}
		return nil
	})
}

// lastWritten returns the timestamp in the last line of a session file.
func lastWritten(data []byte) (time.Time, bool) {
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	var last struct {
		Timestamp time.Time `json:"timestamp"`
	}
	err := json.Unmarshal(lines[len(lines)-1], &last)
	return last.Timestamp, err == nil && !last.Timestamp.IsZero()
}
