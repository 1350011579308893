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
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
)

// This file makes a SOURCE of session files that lie in no agent directory, such as one that a colleague
// sent. Each agent is known by a record. The files, and those in the directories beside them, have other
// names of the same files in an agent directory of their own, or are copied where that cannot be.
// Compressed ones are unpacked there.

// loneDir is the directory of omp's sessions in such an agent directory.
const loneDir = "-file"

// loneFile is a session file that lies in no agent directory.
type loneFile struct {
	path   string // absolute, without links
	plain  string // the path of the file, or of the text of a compressed one
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

// base returns the name of the file, without the ending of a compressed one.
func (f *loneFile) base() string {
	plain, _ := gzip.Packed(filepath.Base(f.path))
	return plain
}

// place returns the path of the file in an agent directory, and in the tree that shows it.
func (f *loneFile) place() (inAgent, shown string) {
	base := f.base()
	if f.agent == nil { // omp's own form is shown as it lies
		inAgent = path.Join(layout.Sessions, loneDir, base)
		return inAgent, inAgent
	}
	dir, below := f.agent.Lone(base, f.record)
	return path.Join(dir, below), path.Join(layout.Sessions, f.agent.NameOf(dir, below))
}

// errUnknownFile refuses a file of no known agent.
func errUnknownFile(file string) error {
	return fs.Refuse(fs.ErrSource, "%s has no records of omp, xcsh, pi, operator, %s", file, agents.Titles())
}

// newLoneFile returns the session file at a path, or refuses it. It unpacks a compressed one into a new file
// in the directory made.
func newLoneFile(file, made string) (loneFile, error) {
	plain := file
	if isPacked(file) {
		unpacked, err := unpack(file, made)
		if err != nil {
			return loneFile{}, fs.Refuse(fs.ErrSource, "%s: %s", file, err)
		}
		plain = unpacked
	}
	agent, record, ok := agents.WriterOfFile(plain)
	if !ok {
		return loneFile{}, errUnknownFile(file)
	}
	if agent != nil && agent.Lone == nil {
		return loneFile{}, fs.Refuse(fs.ErrSource, "%s is a copy of what %s keeps elsewhere; 'sessionfs import' makes a session of omp of it",
			file, agent.Title)
	}
	return loneFile{
		path:   file,
		plain:  plain,
		agent:  agent,
		record: record,
	}, nil
}

// unpack unpacks a compressed file into a new one in a directory, and returns its path. The new file has the
// time of the other.
func unpack(file, made string) (unpacked string, err error) {
	parent, err := dir.Open(filepath.Dir(file))
	if err != nil {
		return "", err
	}
	obj, err := parent.Open(filepath.Base(file))
	if err != nil {
		return "", err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return "", err
	}
	out, err := os.CreateTemp(made, "unpacked-")
	if err != nil {
		return "", err
	}
	bounded, err := budget.NamedFile(out, os.TempDir()) // leaves room on the disk
	if err != nil {
		_ = out.Close()
		return "", err
	}
	err = gzip.Unpack(filepath.Base(file), obj, bounded)
	err = errors.Join(err, out.Close())
	if err != nil {
		return "", err
	}
	return out.Name(), os.Chtimes(out.Name(), st.ModTime(), st.ModTime())
}

// ofFiles returns a place of session files alone, for reading, or refuses one of them. Callers must discard it.
func ofFiles(files []string) (*Place, error) {
	made, err := os.MkdirTemp("", "sessionfs-file-")
	if err != nil {
		return nil, err
	}
	p := &Place{made: made, lone: map[string]string{}}
	p.ReadOnly = true
	err = p.addLones(files)
	if err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}

// addLones makes the place one of files, of one agent or of several. It sets Source and lone.
func (p *Place) addLones(files []string) error {
	made, err := filepath.EvalSymlinks(p.made)
	if err != nil {
		return err
	}
	var all []loneFile
	for _, file := range files {
		f, err := newLoneFile(file, made)
		if err != nil {
			return err
		}
		all = append(all, f)
	}
	for i := range all {
		err := p.addLone(&all[i], made)
		if err != nil {
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

// addLone puts a file, with the directory of its name beside it, into the directory of its agent below made, and adds
// that directory to the place.
func (p *Place) addLone(f *loneFile, made string) error {
	home := filepath.Join(made, f.name())
	isKnown := slices.ContainsFunc(p.Agents, func(a mountopts.AgentDir) bool {
		return a.Source == home
	})
	if !isKnown {
		p.Agents = append(p.Agents, mountopts.AgentDir{
			Name:     f.name(),
			Source:   home,
			SourceAs: home,
		})
	}
	inAgent, shown := f.place()
	file := filepath.Join(home, inAgent)
	err := linkOrCopy(f.plain, file)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	p.lone[f.path] = shown
	ext := filepath.Ext(file)
	beside := filepath.Join(filepath.Dir(f.path), strings.TrimSuffix(f.base(), ext))
	return linkTree(beside, strings.TrimSuffix(file, ext))
}

// maxBeside bounds the files beside a session that come along.
const maxBeside = 10_000

// linkTree gives the regular files below the directory from, if there is one, other names below to, maxBeside at most.
func linkTree(from, to string) error {
	count := 0
	err := filepath.WalkDir(from, func(name string, item iofs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // the session is shown without it
		case count == maxBeside:
			return iofs.SkipAll
		case !item.Type().IsRegular():
			return nil
		}
		count++
		below, err := filepath.Rel(from, name)
		if err == nil {
			err = linkOrCopy(name, filepath.Join(to, below))
		}
		return err
	})
	return err
}

// linkOrCopy gives a file another name, or copies it with its time where it cannot have one, as on another disk. It
// makes the directories above the name. A name that is there is an error.
func linkOrCopy(from, to string) error {
	err := os.MkdirAll(filepath.Dir(to), 0o700)
	if err != nil {
		return err
	}
	err = os.Link(from, to)
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
	err = errors.Join(err, out.Close())
	if err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// loneFiles returns the session files of this machine among arguments. Some are not in agent
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
	file, below, isFile := sessionFile(arg)
	shown = p.lone[file]
	if !isFile || shown == "" {
		return "", false
	}
	if below != "" {
		shown = strings.TrimSuffix(shown, layout.SessionSuffix) + "/" + below
	}
	return shown, true
}
