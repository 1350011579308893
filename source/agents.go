package source

import (
	"errors"
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
	"sessionfs/sessioncore/storage"
)

// agentCandidates are the directories where agents of this user may have their sessions, in the order
// of the choice of SOURCE. Of each agent the first that is there counts.
//
// PI_CODING_AGENT_DIR is obeyed by omp and pi, and is of one of them. A client of omp that follows
// the XDG Base Directory Specification has the parts of its agent directory in two places
// (docs/format.md, Files): sessions, blobs and databases in $XDG_DATA_HOME/omp, the breadcrumbs of
// terminals in $XDG_STATE_HOME/omp. It uses each of them as soon as it exists.
func agentCandidates(getenv func(string) string) (all []mountopts.AgentDir) {
	inHome := func(dir string) string {
		home := getenv("HOME")
		if home != "" {
			return filepath.Join(home, dir)
		}
		return ""
	}
	told := getenv("PI_CODING_AGENT_DIR")
	usual := inHome(".omp/agent")
	state := xdgDir(getenv, "XDG_STATE_HOME")
	isPi := told != "" && fs.IsPi(told)
	if told != "" && !isPi { // the client then has no other directory
		all = append(all, mountopts.AgentDir{Name: "omp", Source: told})
	} else {
		data := mountopts.AgentDir{Name: "omp", Source: xdgDir(getenv, "XDG_DATA_HOME"), State: state}
		if state == "" {
			data.State = usual
		}
		all = append(all, data, mountopts.AgentDir{Name: "omp", Source: usual, State: state})
	}
	if isPi {
		all = append(all, mountopts.AgentDir{Name: "pi", Source: told})
	}
	all = append(all, mountopts.AgentDir{Name: "pi", Source: inHome(".pi/agent")})
	for _, agent := range agents.All() {
		all = append(all, mountopts.AgentDir{Name: agent.Name, Source: agent.Home(getenv)})
	}
	return slices.DeleteFunc(all, func(a mountopts.AgentDir) bool {
		return a.Source == ""
	})
}

// AgentDirs returns the agent directories of this user that are there, one of each agent, in the order of the
// choice of SOURCE. A directory that is gone counts if its sessions are kept.
func AgentDirs(getenv func(string) string) (dirs []mountopts.AgentDir) {
	for _, c := range agentCandidates(getenv) {
		c.Source = orKept(c)
		isListed := func(a mountopts.AgentDir) bool {
			return a.Name == c.Name || IsSame(a.Source, c.Source)
		}
		if !slices.ContainsFunc(dirs, isListed) && isThere(c) {
			dirs = append(dirs, c)
		}
	}
	return dirs
}

// orKept returns the directory of a candidate, or, if it is gone, the directory of its kept sessions.
func orKept(c mountopts.AgentDir) string {
	_, err := os.Stat(c.Source)
	if agents.Find(c.Name) == nil || !errors.Is(err, iofs.ErrNotExist) {
		return c.Source
	}
	kept := fs.KeptOf(c.Name, c.Source)
	if kept != "" {
		return kept
	}
	return c.Source
}

// isThere reports whether a candidate is a directory of its agent, or one that cannot be read.
func isThere(c mountopts.AgentDir) bool {
	agent := agents.Find(c.Name)
	switch {
	case isClosed(c.Source):
		return true
	case !IsDir(c.Source):
		return false
	case c.Name == "omp" && fs.IsPi(c.Source): // pi's own candidate has it
		return false
	}
	return agents.Of(c.Source) == agent || Unread(c.Source) > 0
}

// Usual returns the first candidate of an agent, the zero value if there is none.
func Usual(name string, getenv func(string) string) (usual mountopts.AgentDir) {
	all := agentCandidates(getenv)
	i := slices.IndexFunc(all, func(a mountopts.AgentDir) bool {
		return a.Name == name
	})
	if i >= 0 {
		usual = all[i]
	}
	return usual
}

// setUsual sets Source in o if it is not given, and State if Source is omp's default. Source stays empty if neither
// a variable nor HOME names a directory.
func setUsual(o *mountopts.Options, getenv func(string) string) {
	usual := Usual("omp", getenv)
	told := getenv("PI_CODING_AGENT_DIR")
	switch {
	case told != "":
		if o.Source == "" {
			o.Source = told
		}
	case o.Source == "":
		dirs := AgentDirs(getenv)
		if len(dirs) > 0 {
			isRead := func(a mountopts.AgentDir) bool {
				return Unread(a.Source) == 0
			}
			usual = dirs[max(0, slices.IndexFunc(dirs, isRead))]
		}
		o.Source = usual.Source
		o.State = usual.State
	case IsSame(o.Source, usual.Source):
		o.State = usual.State
	}
}

// xdgDir returns the client's directory below the one that an environment variable names, or "" if
// there is none.
func xdgDir(getenv func(string) string, variable string) string {
	dir := filepath.Join(getenv(variable), "omp")
	if !filepath.IsAbs(dir) || !IsDir(dir) {
		return ""
	}
	return dir
}

// isClosed reports whether a directory is there, or may be, and cannot be read.
func isClosed(path string) bool {
	f, err := storage.OpenDir(path)
	if err == nil {
		_, err = f.Readdirnames(1)
		_ = f.Close()
	}
	if err == nil || err == io.EOF {
		return false
	}
	return !errors.Is(err, iofs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR)
}

// IsSame reports whether two paths lead to the same directory, which is there.
func IsSame(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

// OtherHomes returns the usual agent directories besides omp's, for people.
func OtherHomes() []string {
	homes := []string{"~/.pi/agent"}
	for _, a := range agents.All() {
		homes = append(homes, a.InHome())
	}
	return homes
}

// AgentOf returns the agent of a SOURCE, and its directory, "" for a database.
func AgentOf(source string) mountopts.AgentDir {
	if mountopts.IsDatabase(source) {
		return mountopts.AgentDir{Name: "omp"}
	}
	agent := agents.Of(source)
	switch {
	case agent != nil:
		return mountopts.AgentDir{Name: agent.Name, Source: source}
	case fs.IsPi(source):
		return mountopts.AgentDir{Name: "pi", Source: source}
	case strings.HasSuffix(source, "/.xcsh/agent"):
		return mountopts.AgentDir{Name: "xcsh", Source: source}
	}
	return mountopts.AgentDir{Name: "omp", Source: source}
}
