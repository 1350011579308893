package source

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
)

// This file makes a SOURCE of session files that lie in no agent directory, such as one that a colleague
// sent. Each agent is known by a record. The files, and those in the directories beside them, have other
// names of the same files in an agent directory of their own, or are copied where that cannot be.

// loneDir is the directory of omp's sessions in such an agent directory.
const loneDir = "-file"

// loneFile is a session file that lies in no agent directory.
type loneFile struct {
	path   string // absolute, without links
	agent  *agents.Agent
	record []byte
}

// name returns the agent's name.
func (f *loneFile) name() string {
	if f.agent == nil {
		return "omp"
	}
	return f.agent.Name
}

// place returns the path of the file in an agent directory, and in the tree that shows it.
func (f *loneFile) place() (at, shown string) {
	base := filepath.Base(f.path)
	if f.agent == nil {
		at = path.Join(layout.Sessions, loneDir, base)
		return at, at
	}
	dir, below := f.agent.Lone(base, f.record)
	return path.Join(dir, below), path.Join(layout.Sessions, f.agent.NameOf(dir, below))
}

// errUnknownFile refuses a file of no known agent.
func errUnknownFile(file string) error {
	return fs.Refuse(fs.ErrSource, "%s has no records of omp, xcsh, pi, operator, %s", file, agents.Titles())
}

// newLoneFile returns the session file at a path, or refuses it.
func newLoneFile(file string) (loneFile, error) {
	agent, record, ok := agents.WriterOfFile(file)
	if !ok {
		return loneFile{}, errUnknownFile(file)
	}
	if agent != nil && agent.Lone == nil {
		return loneFile{}, fs.Refuse(fs.ErrSource, "%s is a copy of what %s keeps elsewhere; 'sessionfs import' makes a session of omp of it",
			file, agent.Title)
	}
	return loneFile{path: file, agent: agent, record: record}, nil
}

// ofFiles returns a place of session files alone, for reading.
func ofFiles(files []string) (*Place, error) {
	var all []loneFile
	for _, file := range files {
		f, err := newLoneFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	made, err := os.MkdirTemp("", "sessionfs-file-")
	if err != nil {
		return nil, err
	}
	p := &Place{made: made, lone: map[string]string{}}
	p.ReadOnly = true
	err = p.addLones(all)
	if err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}

// addLones makes the place one of files, of one agent or of several.
func (p *Place) addLones(all []loneFile) error {
	made, err := filepath.EvalSymlinks(p.made)
	if err != nil {
		return err
	}
	for i := range all {
		if err := p.addLone(&all[i], made); err != nil {
			return err
		}
	}
	if len(p.Agents) == 1 {
		p.Source = p.Agents[0].Source
		p.Agents = nil
		return nil
	}
	p.Source = mountopts.All
	for i := range all {
		_, shown := all[i].place()
		below := strings.TrimPrefix(shown, layout.Sessions+"/")
		p.lone[all[i].path] = path.Join(layout.Sessions, all[i].name(), below)
	}
	return nil
}

// addLone adds a file to the agent directories of the place.
func (p *Place) addLone(f *loneFile, made string) error {
	home := filepath.Join(made, f.name())
	isHome := func(a mountopts.AgentDir) bool { return a.Source == home }
	if !slices.ContainsFunc(p.Agents, isHome) {
		p.Agents = append(p.Agents, mountopts.AgentDir{Name: f.name(), Source: home, SourceAs: home})
	}
	at, shown := f.place()
	to := filepath.Join(home, at)
	if err := linkOrCopy(f.path, to); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	p.lone[f.path] = shown
	return linkTree(strings.TrimSuffix(f.path, filepath.Ext(f.path)), strings.TrimSuffix(to, filepath.Ext(to)))
}

// maxBeside bounds the files beside a session that come along.
const maxBeside = 10_000

// linkTree gives the regular files in a directory, if there is one, other names.
func linkTree(from, to string) error {
	n := 0
	err := filepath.WalkDir(from, func(name string, item iofs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // the session is shown without it
		case n == maxBeside:
			return iofs.SkipAll
		case !item.Type().IsRegular():
			return nil
		}
		n++
		below, err := filepath.Rel(from, name)
		if err == nil {
			err = linkOrCopy(name, filepath.Join(to, below))
		}
		return err
	})
	return err
}

// linkOrCopy gives a file another name, or copies it with its time.
func linkOrCopy(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := os.Link(from, to)
	if err == nil || errors.Is(err, iofs.ErrExist) {
		return err
	}
	in, info, err := storage.OpenRegular(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// loneFiles returns the session files of this machine among arguments, of which some are not in agent
// directories.
func loneFiles(args []string) (files []string) {
	for _, arg := range args {
		file, _, ok := sessionFile(arg)
		if ok && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	return files
}

// loneShown returns the path in the tree of an argument that names one of the place's files, or a name
// in its session.
func (p *Place) loneShown(arg string) (shown string, ok bool) {
	if len(p.lone) == 0 {
		return "", false
	}
	file, below, ok := sessionFile(arg)
	shown = p.lone[file]
	if !ok || shown == "" {
		return "", false
	}
	if below != "" {
		shown = strings.TrimSuffix(shown, layout.SessionSuffix) + "/" + below
	}
	return shown, true
}
