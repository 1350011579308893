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
	"sessionfs/sessioncore/names"
	"sessionfs/testdata"
)

// resolve finds SOURCE where it is not given, makes it absolute, with its symlinks resolved, and
// unpacks the sample store where that is SOURCE, or refuses it. A database stays as it is given;
// opening it tells whether it can be used.
func (p *place) resolve(stderr io.Writer) (err error) {
	isDefault := p.Source == ""
	if p.Demo {
		err = p.unpackDemo()
	} else if placeSource(&p.Options, os.Getenv); p.Source == "" {
		err = refuse(exitUsage, "SOURCE is not given, and neither PI_CODING_AGENT_DIR nor HOME is set")
	}
	if err != nil {
		return err
	}
	if err := p.CheckSource(); err != nil {
		return refuse(exitUsage, "%s", err)
	}
	for _, file := range []*string{&p.Prices, &p.RedactRules, &p.Blobs} {
		if *file != "" && (file != &p.Prices || *file != mountopts.NoPrices) {
			if *file, err = absolute(*file); err != nil {
				return err
			}
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

// resolveDir returns an agent directory absolute, with its symlinks resolved and as it is given, or
// refuses it. It warns of one that has no sessions yet.
func resolveDir(given string, isDefault bool, stderr io.Writer) (resolved, as string, err error) {
	hint := ""
	if isDefault {
		hint = "\nIt is the default; give SOURCE if the agent directory is elsewhere, " +
			"or try 'sessionfs --demo MOUNTPOINT'."
	}
	abs, err := absolute(given)
	if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be resolved: %s", given, err)
	}
	resolved, err = filepath.EvalSymlinks(abs)
	if errors.Is(err, iofs.ErrNotExist) {
		return "", "", refuse(exitSource, "SOURCE %s does not exist%s", abs, hint)
	}
	if err != nil {
		return "", "", refuse(exitSource, "SOURCE %s cannot be used: %s%s", abs, err, hint)
	}
	items, err := os.ReadDir(resolved) // on some network file systems a successful open means nothing
	if err == nil {
		_, err = os.Lstat(resolved + "/.") // listing needs r; opening what is listed needs x
	}
	switch {
	case errors.Is(err, unix.ENOTDIR):
		return "", "", refuse(exitSource, "SOURCE %s is not a directory; it must be the agent directory, "+
			"which holds sessions/%s", resolved, hint)
	case err != nil:
		return "", "", refuse(exitSource, "SOURCE %s cannot be read by user %d: %s%s",
			resolved, os.Geteuid(), err, hint)
	}
	warning, err := checkAgentDir(abs, resolved, items, os.Getenv)
	if warning != "" {
		fmt.Fprintln(stderr, "sessionfs: warning:", names.VisibleExcept(warning, "\n"))
	}
	return resolved, filepath.Clean(abs), err
}

// resolveAgents finds the agents of this user. Those that cannot be opened are left out, unless all
// are.
func resolveAgents(o *mountopts.Options, stderr io.Writer) (err error) {
	dirs := agentDirs(os.Getenv)
	if len(dirs) == 0 {
		return refuse(exitSource, "no agent of this user has sessions: neither ~/.omp/agent nor %s is there",
			agents.OneOf(otherHomes()))
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
		fmt.Fprintln(stderr, "sessionfs: warning:", names.Visible(out))
	}
	return nil
}

// absolute puts the working directory before a relative path. Unlike filepath.Abs it keeps "..",
// which after a symlink does not lead back.
func absolute(path string) (string, error) {
	if filepath.IsAbs(path) {
		return path, nil
	}
	wd, err := os.Getwd()
	return wd + "/" + path, err
}

// candidates are the directories in which agents of this user may have their sessions, in the order
// in which SOURCE is chosen. Of each agent the first that is there counts.
//
// PI_CODING_AGENT_DIR is obeyed by omp and pi, and is of one of them. A client of omp that follows
// the XDG Base Directory Specification has the parts of its agent directory in two places
// (docs/format.md, Files): sessions, blobs and databases in $XDG_DATA_HOME/omp, the breadcrumbs of
// terminals in $XDG_STATE_HOME/omp. It uses each of them as soon as it exists.
func candidates(getenv func(string) string) (all []mountopts.AgentDir) {
	inHome := func(dir string) string {
		if home := getenv("HOME"); home != "" {
			return filepath.Join(home, dir)
		}
		return ""
	}
	told, usual := getenv("PI_CODING_AGENT_DIR"), inHome(".omp/agent")
	state, isPi := xdgDir(getenv, "XDG_STATE_HOME"), told != "" && fs.IsPi(told)
	if told != "" && !isPi {
		all = append(all, mountopts.AgentDir{Name: "omp", Source: told})
	} else {
		data := mountopts.AgentDir{Name: "omp", Source: xdgDir(getenv, "XDG_DATA_HOME"), State: cmp.Or(state, usual)}
		all = append(all, data, mountopts.AgentDir{Name: "omp", Source: usual, State: state})
	}
	if isPi {
		all = append(all, mountopts.AgentDir{Name: "pi", Source: told})
	}
	all = append(all, mountopts.AgentDir{Name: "pi", Source: inHome(".pi/agent")})
	for _, agent := range agents.All() {
		all = append(all, mountopts.AgentDir{Name: agent.Name, Source: agent.Home(getenv)})
	}
	return slices.DeleteFunc(all, func(a mountopts.AgentDir) bool { return a.Source == "" })
}

// agentDirs returns the agent directories of this user that are there.
func agentDirs(getenv func(string) string) (dirs []mountopts.AgentDir) {
	for _, c := range candidates(getenv) {
		same := func(a mountopts.AgentDir) bool { return a.Name == c.Name || isSame(a.Source, c.Source) }
		if !slices.ContainsFunc(dirs, same) && isThere(c) {
			dirs = append(dirs, c)
		}
	}
	return dirs
}

// isThere reports whether a candidate is a directory of its agent, or one that cannot be read.
func isThere(c mountopts.AgentDir) bool {
	switch agent := agents.Find(c.Name); {
	case isClosed(c.Source):
		return true
	case agent == nil && c.Name != "pi" && fs.IsPi(c.Source):
		return false
	default:
		return isDir(c.Source) && agents.Of(c.Source) == agent
	}
}

// usualDir returns the first candidate of an agent, the zero value if there is none.
func usualDir(name string, getenv func(string) string) (usual mountopts.AgentDir) {
	all := candidates(getenv)
	if i := slices.IndexFunc(all, func(a mountopts.AgentDir) bool { return a.Name == name }); i >= 0 {
		usual = all[i]
	}
	return usual
}

// placeSource finds SOURCE if it is not given, and the breadcrumbs if SOURCE is omp's default.
func placeSource(o *mountopts.Options, getenv func(string) string) {
	usual, told := usualDir("omp", getenv), getenv("PI_CODING_AGENT_DIR")
	switch {
	case told != "":
		o.Source = cmp.Or(o.Source, told)
	case o.Source == "":
		if dirs := agentDirs(getenv); len(dirs) > 0 {
			usual = dirs[0]
		}
		o.Source, o.State = usual.Source, usual.State
	case isSame(o.Source, usual.Source):
		o.State = usual.State
	}
}

// xdgDir returns the client's directory below the one that an environment variable names, or "" if
// there is none.
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
		return fmt.Sprintf("SOURCE %s shows no sessions now: %s is a symlink to %s, which cannot be reached",
			dir, sessions, target), nil
	}
	if hasAny(dir, clientMarks) || isDir(fs.PiSessions(given, dir, getenv)) {
		return "", nil // a client makes sessions/ for its first session
	}
	hint := ""
	if meant := meantBy(given, dir, items); meant != "" {
		hint = "\nProbably meant: " + meant
	} else if usual := usualDir("omp", getenv).Source; usual != "" && isAgentDir(usual) {
		hint = "\nThe agent directory of this user is " + usual
	}
	if len(items) > 0 && !hasAny(dir, genericMarks) {
		hint = cmp.Or(hint, "\nIf it is to be one: mkdir "+dir+"/sessions. If it holds session files itself: "+
			"mkdir AGENT; ln -s "+dir+" AGENT/sessions")
		return "", refuse(exitSource, "SOURCE %s is not an agent directory, which holds sessions/%s", dir, hint)
	}
	return fmt.Sprintf("SOURCE %s has no sessions/, as an agent directory has; it will show once a client has made it%s", dir, hint), nil
}

// meantBy looks for an agent directory in which dir is, such as its sessions/, or which is in dir,
// which holds items: in ~/.omp, the home directory, ~/.operator or ~/.operator/profiles. It looks
// at the path as given too, since sessions/ may be a symlink to another disk.
func meantBy(given, dir string, items []iofs.DirEntry) string {
	for _, path := range []string{dir, filepath.Clean(given)} {
		for ; path != "/"; path = filepath.Dir(path) {
			if parent := filepath.Dir(path); isAgentDir(parent) || agents.Of(parent) != nil {
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

// unpackDemo makes the built-in sample stores SOURCE, in a private directory.
func (p *place) unpackDemo() (err error) {
	if p.made, err = os.MkdirTemp("", "sessionfs-demo-"); err != nil { // mode 0700
		return refuse(exitSource, "the sample store cannot be unpacked: %s", err)
	}
	p.Source, p.FSName = mountopts.All, cmp.Or(p.FSName, "demo")
	add := func(name string, store iofs.FS) {
		at := filepath.Join(p.made, name)
		if err == nil && store != nil {
			err = unpack(store, at)
			p.Agents = append(p.Agents, mountopts.AgentDir{Name: name, Source: at, SourceAs: at})
		}
	}
	add("omp", testdata.Demo())
	for _, agent := range agents.All() {
		add(agent.Name, testdata.DemoOf(agent.Name))
	}
	if err != nil {
		err = refuse(exitSource, "the sample store cannot be unpacked to %s: %s", p.made, err)
	}
	return err
}

// unpack copies src to dir: directories with mode 0700, files with 0600. The modification time of a
// session is the time of its last entry, so that ls -t lists the newest one first.
func unpack(src iofs.FS, dir string) error {
	return iofs.WalkDir(src, ".", func(name string, d iofs.DirEntry, err error) error {
		target := filepath.Join(dir, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
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
