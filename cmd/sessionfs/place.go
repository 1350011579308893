package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
)

// place is a SOURCE that an argument or an option names.
type place struct {
	mountopts.Options
	mountpoint string // of the mount whose options these are, "" if they are of none
	made       string // a directory that is removed when SOURCE is closed, "" for none
}

// remove removes the files that were made for the place.
func (p *place) remove() {
	if p.made != "" {
		_ = os.RemoveAll(p.made)
	}
}

// placeNamed returns the place that -s names: an agent of this user, all of them, the sample store,
// the source of the mount at a mount point, or an agent directory.
func placeNamed(given string) (p place, err error) {
	switch {
	case given == "demo":
		p.Demo = true
	case given == "all":
		p.Source = mountopts.All
	case given == "omp", given == "pi", agents.Find(given) != nil:
		dirs := agentDirs(os.Getenv)
		i := slices.IndexFunc(dirs, func(a mountopts.AgentDir) bool { return a.Name == given })
		if i < 0 {
			return p, refuse(exitSource, "this user has no sessions of %s: %s is not there; "+
				"./%[1]s is a directory of that name", given, usualDir(given, os.Getenv).Source)
		}
		p.Source, p.State = dirs[i].Source, dirs[i].State
	default:
		for _, real := range realPaths(given) {
			if at, err := mountedAt(real); at.mountpoint == real {
				return at, err
			}
		}
		p.Source = given
	}
	return p, nil
}

// placeOf returns the place of the first argument of a command that lies in one (placeAround), the default if none does. Of
// arguments that are no paths of this machine it is that of the working directory.
func placeOf(args []string, are arguments) (p place, err error) {
	if are == words || are == anyWords {
		args = []string{"."}
	}
	for _, arg := range args {
		for _, real := range realPaths(arg) {
			if p, err = placeAround(real); err != nil || p.mountpoint != "" || p.Source != "" {
				return p, err
			}
		}
		if file, ok := sessionFile(arg); ok && are == anySession {
			return placeOfFile(file)
		}
	}
	if are == anyWords {
		var usual mountopts.Options
		placeSource(&usual, os.Getenv)
		isUsual := func(a mountopts.AgentDir) bool { return isSame(a.Source, usual.Source) }
		for _, m := range toldMounts() {
			if !m.Redact && slices.ContainsFunc(m.Agents, isUsual) {
				return m, nil
			}
		}
	}
	return p, nil
}

// placeAround returns the place in which a path lies, absolute and without links, or to which it leads: what a mount shows there, an
// agent directory of this user, or another directory that is certainly one. It is the zero value if there is none.
func placeAround(real string) (p place, err error) {
	if p, err = mountedAt(real); err != nil || p.mountpoint != "" {
		return p, err
	}
	for _, a := range agentDirs(os.Getenv) {
		if shows(a.Source, real) {
			p.Source = a.Source
			return p, nil
		}
	}
	for dir := real; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if isCertainAgentDir(dir) && shows(dir, real) {
			p.Source = dir
			return p, nil
		}
	}
	return p, nil
}

// shows reports whether a path lies in an agent directory, or in a directory to which one of its links leads.
func shows(dir, real string) bool {
	resolved, err := filepath.EvalSymlinks(dir)
	_, shown := fs.ShownAs(mountopts.Options{Source: resolved}, real)
	return err == nil && (shown || isBelow(real, resolved))
}

// isBelow reports whether a path is dir or below it, by their names.
func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// realPaths returns the paths of this machine for which an argument may stand, absolute and without links but for the last
// part; and without that one too. Not all need exist.
func realPaths(arg string) (paths []string) {
	abs, err := absolute(arg)
	if err != nil {
		return nil // the working directory is gone
	}
	dir, rest := filepath.Split(abs)
	for {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			paths = append(paths, filepath.Join(real, rest))
			break
		}
		up := filepath.Dir(strings.TrimSuffix(dir, "/"))
		if dir == "/" || up == dir {
			return nil
		}
		dir, rest = up, strings.TrimPrefix(abs, strings.TrimSuffix(up, "/")+"/")
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil && real != paths[0] {
		paths = append(paths, real)
	}
	return paths
}

// isCertainAgentDir reports whether a directory cannot be much else than an agent directory.
func isCertainAgentDir(dir string) bool {
	return agents.HasScopes(dir) || agents.Of(dir) != nil || isDir(filepath.Join(dir, "sessions")) && hasAny(dir, clientMarks)
}

// sessionFile returns the session file of this machine that an argument names, with or without an entry.
func sessionFile(arg string) (real string, ok bool) {
	for _, name := range []string{arg, beforeEntry(arg)} {
		real, err := filepath.EvalSymlinks(name)
		if info, statErr := os.Lstat(real); err == nil && statErr == nil && info.Mode().IsRegular() && strings.HasSuffix(real, sessionSuffix) {
			real, err = filepath.Abs(real)
			return real, err == nil
		}
	}
	return "", false
}

// placeOfFile returns an agent directory that has what lies beside a session file, for reading alone.
func placeOfFile(file string) (p place, err error) {
	p.ReadOnly = true
	for dir := filepath.Dir(file); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "sessions" {
			p.Source = filepath.Dir(dir)
			return p, nil
		}
	}
	if p.made, err = os.MkdirTemp("", "sessionfs-file-"); err == nil {
		err = os.Symlink(filepath.Dir(file), filepath.Join(p.made, "sessions"))
	}
	if err != nil {
		p.remove()
	}
	p.Source = p.made
	return p, err
}

// local returns the path in the tree of what an argument stands for as a path of this machine.
func (src *source) local(arg string) (shown string, ok bool) {
	if src.flags.args == noPaths || src.flags.args == words {
		return "", false
	}
	for _, real := range realPaths(arg) {
		if at, err := mountedAt(real); at.mountpoint != "" {
			shown, _ = filepath.Rel(at.mountpoint, real)
			ok = err == nil && at.Source == src.Source
		} else {
			shown, ok = fs.ShownAs(src.Options, real)
		}
		if shown = filepath.ToSlash(shown); ok {
			if file, rest, cut := strings.Cut(shown, sessionSuffix+"/"); cut { // what a session has, behind its file
				shown = file + "/" + rest
			}
			if _, err := src.Lstat(shown); err == nil {
				return shown, true
			}
		}
	}
	return "", false
}
