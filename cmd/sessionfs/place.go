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

// place is a SOURCE, as it was found by what was typed.
type place struct {
	mountopts.Options
	mountpoint string // of the mount whose options these are, "" if they are of none
	remove     func() // when SOURCE is closed
}

// placeNamed returns the place that -s names: an agent of this user, all of them, the sample store,
// the source of the mount at a mount point, or an agent directory.
func placeNamed(given string) (place, error) {
	p := place{Options: mountopts.Options{Source: given}, remove: func() {}}
	switch {
	case given == "demo":
		p.Source, p.Demo = "", true
	case given == "all":
		p.Source = mountopts.All
	case slices.Contains(agentOrder(), given):
		dirs := agentDirs(os.Getenv)
		i := slices.IndexFunc(dirs, func(a mountopts.AgentDir) bool { return a.Name == given })
		if i < 0 {
			return p, refuse(exitSource, "this user has no sessions of %s: %s is not there; "+
				"./%[1]s is a directory of that name", given, usualDir(given, os.Getenv))
		}
		p.Source, p.State = dirs[i].Source, dirs[i].State
	default:
		for _, real := range realPaths(given) {
			if o, mountpoint, err := shownAt(real); mountpoint == real {
				return place{o, mountpoint, func() {}}, err
			}
		}
	}
	return p, nil
}

// placeOf returns the place in which the arguments of a command lie, or the working directory for those that are no paths of
// this machine: that of the first that lies in a mount or in an agent directory, or that of a session file alone. Without any
// it is the default.
func placeOf(args []string, are arguments) (place, error) {
	if are == words || are == anyWords {
		args = []string{"."}
	}
	for _, arg := range args {
		for _, real := range realPaths(arg) {
			o, mountpoint, err := shownAt(real)
			if err != nil || mountpoint != "" {
				return place{o, mountpoint, func() {}}, err
			}
			if dir := agentDirOf(real); dir != "" {
				return place{Options: mountopts.Options{Source: dir}, remove: func() {}}, nil
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
	return place{remove: func() {}}, nil
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

// agentDirOf returns the agent directory in which a path lies, absolute and without links, or to which it leads: one of this
// user's, or another one. It is "" if there is none.
func agentDirOf(real string) string {
	has := func(dir string) bool {
		resolved, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return false
		}
		_, ok := fs.ShownAs(mountopts.Options{Source: resolved}, real)
		return ok || real == resolved || strings.HasPrefix(real, strings.TrimSuffix(resolved, "/")+"/")
	}
	for _, a := range agentDirs(os.Getenv) {
		if has(a.Source) {
			return a.Source
		}
	}
	for dir := real; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if isCertainAgentDir(dir) && has(dir) {
			return dir
		}
	}
	return ""
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
	for dir := filepath.Dir(file); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "sessions" {
			return place{Options: mountopts.Options{Source: filepath.Dir(dir), ReadOnly: true}, remove: func() {}}, nil
		}
	}
	made, err := os.MkdirTemp("", "sessionfs-file-")
	if err != nil {
		return p, err
	}
	p = place{Options: mountopts.Options{Source: made, ReadOnly: true}, remove: func() { _ = os.RemoveAll(made) }}
	if err = os.Symlink(filepath.Dir(file), filepath.Join(made, "sessions")); err != nil {
		p.remove()
	}
	return p, err
}

// local returns the path in the tree of what an argument stands for as a path of this machine.
func (src *source) local(arg string) (shown string, ok bool) {
	if src.flags.args == noPaths || src.flags.args == words {
		return "", false
	}
	for _, real := range realPaths(arg) {
		if o, mountpoint, err := shownAt(real); mountpoint != "" {
			shown, _ = filepath.Rel(mountpoint, real)
			ok = err == nil && o.Source == src.Source
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
